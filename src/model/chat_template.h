// Renders a conversation through the model's own Jinja template, by llama.cpp's engine. What came
// from the user stays marked, so that special-token text in it is never read as special tokens.
// Tested by tests/model/chat_template_test.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace plateau::model {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

/// A run of rendered text from one origin.
struct RenderedText {
  std::string text;
  bool from_user = false;  // message content, not template
};

class ChatTemplate {
 public:
  /// Errors: kCorrupt when the source does not parse.
  ChatTemplate(const std::string& source, std::string bos_text, std::string eos_text);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// The whole prompt, up to where the assistant speaks next. A template that takes a list of
  /// typed parts only is given each content as one part of text, as llama.cpp does.
  /// Errors: kInvalidArgument when the template refuses the conversation, with its reason.
  std::vector<RenderedText> render(const std::vector<ChatMessage>& messages) const;

 private:
  struct Program;
  std::unique_ptr<Program> program_;
  bool typed_content_ = false;  // content must be a list of parts
  std::string bos_text_;
  std::string eos_text_;
};

}  // namespace plateau::model

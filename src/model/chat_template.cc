#include "model/chat_template.h"

#include <exception>

#include "base/check.h"
#include "jinja/caps.h"
#include "jinja/lexer.h"
#include "jinja/parser.h"
#include "jinja/runtime.h"
#include "jinja/value.h"
#include "json.h"

namespace plateau::model {

struct ChatTemplate::Program {
  std::string source;
  jinja::program program;
};

ChatTemplate::ChatTemplate(const std::string& source, std::string bos_text, std::string eos_text)
    : program_(std::make_unique<Program>()),
      bos_text_(std::move(bos_text)),
      eos_text_(std::move(eos_text)) {
  try {
    jinja::lexer lexer;
    auto lexed = lexer.tokenize(source);
    program_->program = jinja::parse_from_tokens(lexed);
    program_->source = lexed.source;
    const jinja::caps caps = jinja::caps_get(program_->program);
    typed_content_ = caps.supports_typed_content && !caps.supports_string_content;
  } catch (const std::exception& error) {
    throw_error(ErrorCode::kCorrupt, "[chat template] expected a Jinja template, got: {}",
                error.what());
  }
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::vector<RenderedText> ChatTemplate::render(const std::vector<ChatMessage>& messages) const {
  try {
    common_json conversation = common_json::array();
    for (const ChatMessage& message : messages) {
      common_json item = common_json::object();
      item["role"] = message.role;
      if (typed_content_) {
        common_json part = common_json::object();
        part["type"] = "text";
        part["text"] = message.content;
        item["content"] = common_json::array();
        item["content"].push_back(part);
      } else {
        item["content"] = message.content;
      }
      conversation.push_back(item);
    }
    common_json marked = common_json::object();
    marked["messages"] = conversation;
    common_json unmarked = common_json::object();
    unmarked["bos_token"] = bos_text_;
    unmarked["eos_token"] = eos_text_;
    unmarked["add_generation_prompt"] = true;

    jinja::context context(program_->source);
    jinja::global_from_json(context, marked, /*mark_input=*/true);
    jinja::global_from_json(context, unmarked, /*mark_input=*/false);
    jinja::runtime runtime(context);
    const jinja::value results = runtime.execute(program_->program);
    const auto parts = jinja::runtime::gather_string_parts(results);

    std::vector<RenderedText> rendered;
    for (const auto& part : parts->val_str.parts) {
      rendered.push_back({part.val, part.is_input});
    }
    return rendered;
  } catch (const std::exception& error) {
    throw_error(ErrorCode::kInvalidArgument,
                "[chat template] the model's template refuses this conversation: {}", error.what());
  }
}

}  // namespace plateau::model

// Text to token ids and back, by libllama's tokenizers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct llama_vocab;

namespace plateau::model {

using Token = int32_t;

/// A view of a loaded model's vocabulary; valid as long as the model.
class Vocab {
 public:
  explicit Vocab(const llama_vocab* vocab) : vocab_(vocab) {}

  /// With `parse_special`, the text of a control token becomes that token; without, it is plain
  /// text. No BOS or EOS is added.
  std::vector<Token> tokenize(std::string_view text, bool parse_special) const;

  /// The bytes of one token; may be part of a UTF-8 character. Control tokens are empty.
  std::string piece(Token token) const;

  /// Ends an answer (EOS, end of turn, ...).
  bool is_end_of_generation(Token token) const;

  /// The id of a token by its exact text, such as "<img>".
  std::optional<Token> find_special(const std::string& text) const;

  /// BOS where the model wants one at the start of a prompt.
  std::optional<Token> leading_bos() const;

  std::string bos_text() const;
  std::string eos_text() const;

 private:
  const llama_vocab* vocab_;
};

}  // namespace plateau::model

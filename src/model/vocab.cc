#include "model/vocab.h"

#include "base/check.h"
#include "llama.h"

namespace plateau::model {
namespace {

std::string token_text(const llama_vocab* vocab, Token token) {
  const char* text = token == LLAMA_TOKEN_NULL ? nullptr : llama_vocab_get_text(vocab, token);
  return text == nullptr ? "" : text;
}

}  // namespace

std::vector<Token> Vocab::tokenize(std::string_view text, bool parse_special) const {
  if (text.size() > size_t{INT32_MAX} / 2) {
    throw_error(ErrorCode::kInvalidArgument, "[prompt] expected at most {} bytes of text, got {}",
                INT32_MAX / 2, text.size());
  }
  const auto size = static_cast<int32_t>(text.size());
  std::vector<Token> tokens(text.size() + 8);
  int32_t n =
      llama_tokenize(vocab_, text.data(), size, tokens.data(), static_cast<int32_t>(tokens.size()),
                     /*add_special=*/false, parse_special);
  if (n < 0) {
    tokens.resize(static_cast<size_t>(-n));
    n = llama_tokenize(vocab_, text.data(), size, tokens.data(),
                       static_cast<int32_t>(tokens.size()), /*add_special=*/false, parse_special);
  }
  PLATEAU_CHECK(n >= 0);
  tokens.resize(static_cast<size_t>(n));
  return tokens;
}

std::string Vocab::piece(Token token) const {
  std::string text(64, '\0');
  int32_t n = llama_token_to_piece(vocab_, token, text.data(), static_cast<int32_t>(text.size()),
                                   /*lstrip=*/0, /*special=*/false);
  if (n < 0) {
    text.resize(static_cast<size_t>(-n));
    n = llama_token_to_piece(vocab_, token, text.data(), static_cast<int32_t>(text.size()), 0,
                             false);
  }
  PLATEAU_CHECK(n >= 0);
  text.resize(static_cast<size_t>(n));
  return text;
}

bool Vocab::is_end_of_generation(Token token) const { return llama_vocab_is_eog(vocab_, token); }

std::optional<Token> Vocab::find_special(const std::string& text) const {
  const std::vector<Token> tokens = tokenize(text, /*parse_special=*/true);
  if (tokens.size() != 1) return std::nullopt;
  return tokens.front();
}

std::optional<Token> Vocab::leading_bos() const {
  const Token bos = llama_vocab_bos(vocab_);
  if (!llama_vocab_get_add_bos(vocab_) || bos == LLAMA_TOKEN_NULL) return std::nullopt;
  return bos;
}

std::string Vocab::bos_text() const { return token_text(vocab_, llama_vocab_bos(vocab_)); }
std::string Vocab::eos_text() const { return token_text(vocab_, llama_vocab_eos(vocab_)); }

}  // namespace plateau::model

// What the cache knows of a token besides its keys and values.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace plateau::kv {

/// Rotary position: temporal, row, column. All equal for text, and for every token of a model with
/// 1-D rotary embedding, which looks at t alone.
struct Position {
  int32_t t = 0;
  int32_t h = 0;
  int32_t w = 0;

  static Position sequential(int32_t p) { return {p, p, p}; }
  friend bool operator==(const Position&, const Position&) = default;
};

struct TokenInfo {
  Position position;
  int32_t plane = -1;         // which token grid of the prompt it lies on; -1: text
  int32_t h = 0;              // row on that grid
  int32_t w = 0;              // column on it
  int32_t medium = -1;        // which picture or film of the prompt; -1: text
  bool is_protected = false;  // never evicted
};

/// The tokens of a sequence by their place in it. Asked, not stored, wherever they can be worked
/// out: a stored table would grow with the input.
class TokenTable {
 public:
  virtual ~TokenTable() = default;
  virtual int64_t size() const = 0;
  /// REQUIRES: 0 <= token < size().
  virtual TokenInfo at(int64_t token) const = 0;
};

/// A table that is stored.
class TokenList final : public TokenTable {
 public:
  explicit TokenList(std::vector<TokenInfo> tokens) : tokens_(std::move(tokens)) {}
  int64_t size() const override { return static_cast<int64_t>(tokens_.size()); }
  TokenInfo at(int64_t token) const override { return tokens_[static_cast<size_t>(token)]; }

 private:
  std::vector<TokenInfo> tokens_;
};

}  // namespace plateau::kv

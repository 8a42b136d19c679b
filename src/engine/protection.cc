#include "engine/protection.h"

#include <algorithm>

namespace plateau::engine {
namespace {

int64_t count_text(const PromptPlan& prompt) {
  int64_t n = 0;
  for (const Piece& piece : prompt.pieces()) {
    if (piece.kind == PieceKind::kText) n += piece.n_tokens();
  }
  return n;
}

/// The token that has `n` of text before it.
int64_t text_token(const PromptPlan& prompt, int64_t n) {
  for (const Piece& piece : prompt.pieces()) {
    if (piece.kind != PieceKind::kText) continue;
    if (n < piece.n_tokens()) return piece.first_token + n;
    n -= piece.n_tokens();
  }
  return prompt.n_tokens();
}

int count_protected(const PromptPlan& prompt, const Protection& protection) {
  int64_t n = 0;
  for (const Piece& piece : prompt.pieces()) {
    const int64_t end = piece.first_token + piece.n_tokens();
    int64_t first = piece.first_token;
    for (; first < std::min<int64_t>(end, kSinks); ++first) n += 1;
    if (piece.kind == PieceKind::kText) first = std::max(first, protection.first_kept_text);
    if (piece.kind == PieceKind::kText || piece.kind == PieceKind::kMarker) {
      n += std::max<int64_t>(0, end - first);
    }
  }
  return static_cast<int>(n);
}

}  // namespace

Protection protect(const PromptPlan& prompt, int budget, int n_window) {
  Protection result;
  if (budget == 0) return result;
  result.is_needed = true;
  const int64_t limit = std::max<int64_t>(budget / 2, n_window);
  result.n_evictable_text = std::max<int64_t>(0, count_text(prompt) - limit);
  result.first_kept_text = text_token(prompt, result.n_evictable_text);
  result.n_protected = count_protected(prompt, result);
  return result;
}

int smallest_budget(const PromptPlan& prompt, int n_window) {
  int budget = 1;
  while (true) {
    const int n_protected = protect(prompt, budget, n_window).n_protected;
    if (n_protected <= budget) return budget;
    budget = n_protected;
  }
}

kv::TokenInfo PromptTokens::at(int64_t token) const {
  const Piece piece = prompt_.pieces()[prompt_.piece_of(token)];
  const auto index = static_cast<int>(token - piece.first_token);
  kv::TokenInfo info;
  info.position = prompt_.position(piece, index);
  info.is_protected = protection_.covers(piece.kind, token);
  if (piece.kind == PieceKind::kVisual) {
    const UnitLayout& unit = piece.layout;
    info.medium = piece.medium;
    info.plane = unit.plane;
    info.h = unit.grid_h0 + index / unit.n_grid_cols;
    info.w = unit.grid_w0 + index % unit.n_grid_cols;
  }
  return info;
}

}  // namespace plateau::engine

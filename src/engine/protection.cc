#include "engine/protection.h"

#include <algorithm>

namespace plateau::engine {
namespace {

kv::TokenInfo describe(const PromptPlan& prompt, const Piece& piece, int index) {
  kv::TokenInfo info;
  info.position = prompt.position(piece, index);
  if (piece.kind == PieceKind::kVisual) {
    const UnitLayout& unit = piece.layout;
    info.medium = piece.medium;
    info.plane = unit.plane;
    info.h = unit.grid_h0 + index / unit.n_grid_cols;
    info.w = unit.grid_w0 + index % unit.n_grid_cols;
  }
  return info;
}

}  // namespace

Protection protect(const PromptPlan& prompt, int budget, int n_window, int n_generated) {
  Protection result;
  result.info.reserve(static_cast<size_t>(prompt.n_tokens() + n_generated));
  int64_t n_text = 0;
  for (const Piece& piece : prompt.pieces()) {
    if (piece.kind == PieceKind::kText) n_text += piece.n_tokens();
  }
  const int64_t limit = std::max<int64_t>(budget / 2, n_window);
  result.n_evictable_text = budget == 0 ? 0 : std::max<int64_t>(0, n_text - limit);

  int64_t n_text_seen = 0;
  for (const Piece& piece : prompt.pieces()) {
    for (int i = 0; i < piece.n_tokens(); ++i) {
      kv::TokenInfo info = describe(prompt, piece, i);
      const bool is_sink = result.info.size() < static_cast<size_t>(kSinks);
      const bool is_kept_text =
          piece.kind == PieceKind::kText && ++n_text_seen > result.n_evictable_text;
      info.is_protected =
          budget > 0 && (is_sink || is_kept_text || piece.kind == PieceKind::kMarker);
      result.n_protected += info.is_protected ? 1 : 0;
      result.info.push_back(info);
    }
  }
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

}  // namespace plateau::engine

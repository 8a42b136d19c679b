#include "engine/prompt_plan.h"

#include <algorithm>

#include "base/check.h"

namespace plateau::engine {

void PromptPlan::add(Piece piece) {
  const int n = piece.n_tokens();
  if (n == 0) return;
  n_tokens_ += n;
  if (piece.kind == PieceKind::kVisual) {
    n_visual_tokens_ += n;
    ++n_visual_units_;
  }
  pieces_.push_back(std::move(piece));
}

void PromptPlan::add_text(std::vector<model::Token> tokens) {
  Piece piece;
  piece.tokens = std::move(tokens);
  piece.first_position = next_position_;
  next_position_ += piece.n_tokens();
  add(std::move(piece));
}

void PromptPlan::add_marker(std::vector<model::Token> tokens, bool binds_next) {
  Piece piece;
  piece.kind = PieceKind::kMarker;
  piece.tokens = std::move(tokens);
  piece.binds_next = binds_next;
  piece.first_position = next_position_;
  next_position_ += piece.n_tokens();
  add(std::move(piece));
}

void PromptPlan::add_medium(const VisualLayout& layout) {
  PLATEAU_CHECK(!layout.units.empty());
  const int medium = static_cast<int>(own_planes_.size());
  const int first_plane = n_planes_;
  const int64_t start = next_position_;
  own_planes_.push_back(first_plane);
  for (int unit = 0; unit < static_cast<int>(layout.units.size()); ++unit) {
    Piece piece;
    piece.kind = PieceKind::kVisual;
    piece.medium = medium;
    piece.unit = unit;
    piece.layout = layout.units[static_cast<size_t>(unit)];
    const UnitLayout& u = piece.layout;
    PLATEAU_CHECK(u.n_grid_rows >= 1 && u.n_grid_cols >= 1);
    PLATEAU_CHECK(u.grid_h0 >= 0 && u.grid_w0 >= 0 && u.plane >= 0 && u.t >= 0);
    n_planes_ = std::max(n_planes_, first_plane + u.plane + 1);
    piece.layout.plane += first_plane;
    if (rule_ == PositionRule::kSequential) {
      piece.first_position = next_position_;
      next_position_ += piece.n_tokens();
    } else {
      piece.first_position = start;
      const int64_t last = std::max({int64_t{u.t}, int64_t{u.grid_h0} + u.n_grid_rows - 1,
                                     int64_t{u.grid_w0} + u.n_grid_cols - 1});
      next_position_ = std::max(next_position_, start + last + 1);
    }
    add(std::move(piece));
  }
}

kv::Position PromptPlan::position(const Piece& piece, int index) const {
  const auto first = static_cast<int32_t>(piece.first_position);
  if (piece.kind != PieceKind::kVisual || rule_ == PositionRule::kSequential) {
    return kv::Position::sequential(first + index);
  }
  const UnitLayout& unit = piece.layout;
  return {.t = first + unit.t,
          .h = first + unit.grid_h0 + index / unit.n_grid_cols,
          .w = first + unit.grid_w0 + index % unit.n_grid_cols};
}

}  // namespace plateau::engine

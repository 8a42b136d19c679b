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

void PromptPlan::add_tokens(PieceKind kind, std::vector<model::Token> tokens, bool binds_next) {
  Piece piece;
  piece.kind = kind;
  piece.tokens = std::move(tokens);
  piece.binds_next = binds_next;
  piece.first_position = next_position_;
  next_position_ += piece.n_tokens();
  add(std::move(piece));
}

void PromptPlan::add_text(std::vector<model::Token> tokens) {
  add_tokens(PieceKind::kText, std::move(tokens), /*binds_next=*/false);
}

void PromptPlan::add_marker(std::vector<model::Token> tokens, bool binds_next) {
  add_tokens(PieceKind::kMarker, std::move(tokens), binds_next);
}

void PromptPlan::add_label(std::vector<model::Token> tokens, bool binds_next) {
  add_tokens(PieceKind::kLabel, std::move(tokens), binds_next);
}

void PromptPlan::begin_medium() {
  own_planes_.push_back(n_planes_);
  n_units_ = 0;
}

void PromptPlan::add_units(std::span<const UnitLayout> units) {
  PLATEAU_CHECK(!units.empty() && !own_planes_.empty());
  const int64_t start = next_position_;
  for (const UnitLayout& unit : units) {
    PLATEAU_CHECK(unit.n_grid_rows >= 1 && unit.n_grid_cols >= 1 && unit.plane >= 0);
    PLATEAU_CHECK(unit.grid_h0 >= 0 && unit.grid_w0 >= 0 && unit.t >= units.front().t);
    Piece piece;
    piece.kind = PieceKind::kVisual;
    piece.medium = static_cast<int>(own_planes_.size()) - 1;
    piece.unit = n_units_++;
    piece.layout = unit;
    piece.layout.plane += own_planes_.back();
    piece.layout.t -= units.front().t;
    n_planes_ = std::max(n_planes_, piece.layout.plane + 1);
    if (rule_ == PositionRule::kSequential) {
      piece.first_position = next_position_;
      next_position_ += piece.n_tokens();
    } else {
      piece.first_position = start;
      const int64_t last =
          std::max({int64_t{piece.layout.t}, int64_t{unit.grid_h0} + unit.n_grid_rows - 1,
                    int64_t{unit.grid_w0} + unit.n_grid_cols - 1});
      next_position_ = std::max(next_position_, start + last + 1);
    }
    add(std::move(piece));
  }
}

void PromptPlan::add_medium(const VisualLayout& layout) {
  begin_medium();
  add_units(layout.units);
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

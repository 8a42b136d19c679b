#include "engine/prompt_plan.h"

#include "base/check.h"

namespace plateau::engine {

void PromptPlan::add(Piece piece) {
  const int n = piece.n_tokens();
  if (n == 0) return;
  piece.first_position = next_position_;
  next_position_ += n;
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
  add(std::move(piece));
}

void PromptPlan::add_marker(std::vector<model::Token> tokens, bool binds_next) {
  Piece piece;
  piece.kind = PieceKind::kMarker;
  piece.tokens = std::move(tokens);
  piece.binds_next = binds_next;
  add(std::move(piece));
}

void PromptPlan::add_visual(const VisualUnit& unit) {
  PLATEAU_CHECK(unit.n_grid_rows >= 1 && unit.n_grid_cols >= 1);
  Piece piece;
  piece.kind = PieceKind::kVisual;
  piece.image = unit.image;
  piece.unit = unit.unit;
  piece.n_grid_rows = unit.n_grid_rows;
  piece.n_grid_cols = unit.n_grid_cols;
  piece.plane = unit.plane;
  piece.grid_h0 = unit.grid_h0;
  piece.grid_w0 = unit.grid_w0;
  add(std::move(piece));
}

}  // namespace plateau::engine

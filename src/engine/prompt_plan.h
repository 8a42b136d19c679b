// A prompt laid out before anything runs: pieces of text and visual units in order, with the
// position of every token. Pure; its size grows with the number of pieces, not of tokens.
// Tested by tests/engine/prompt_plan_test.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "model/vocab.h"

namespace plateau::engine {

/// What a piece of the prompt is; decides what may be evicted.
enum class PieceKind {
  kText,    // instruction, question, template
  kMarker,  // text that frames a picture, such as <img> and </img>
  kVisual,  // one unit of a picture: a tile or its thumbnail
};

/// A run of tokens that belong together.
struct Piece {
  PieceKind kind = PieceKind::kText;
  std::vector<model::Token> tokens;  // text and markers
  int image = -1;                    // visual: which picture, in prompt order
  int unit = -1;                     // visual: which tile of it
  int n_grid_rows = 0;               // visual: tokens are n_grid_rows rows of n_grid_cols
  int n_grid_cols = 0;
  int plane = -1;   // visual: which token grid its coordinates lie on
  int grid_h0 = 0;  // of its first token on that grid
  int grid_w0 = 0;
  int64_t first_position = 0;  // of its first token
  /// A marker that must not be parted from the piece after it.
  bool binds_next = false;

  int n_tokens() const {
    return kind == PieceKind::kVisual ? n_grid_rows * n_grid_cols : static_cast<int>(tokens.size());
  }
};

/// One tile of a picture, as tokens on the picture's grid.
struct VisualUnit {
  int image = 0;
  int unit = 0;
  int n_grid_rows = 1;
  int n_grid_cols = 1;
  int plane = 0;  // tiles of one picture share a plane; its thumbnail has its own
  int grid_h0 = 0;
  int grid_w0 = 0;
};

class PromptPlan {
 public:
  /// Appends and assigns positions. Empty pieces are left out.
  void add_text(std::vector<model::Token> tokens);
  void add_marker(std::vector<model::Token> tokens, bool binds_next);
  void add_visual(const VisualUnit& unit);

  const std::vector<Piece>& pieces() const { return pieces_; }
  int64_t n_tokens() const { return n_tokens_; }
  int64_t n_visual_tokens() const { return n_visual_tokens_; }
  int64_t n_text_tokens() const { return n_tokens_ - n_visual_tokens_; }
  int n_visual_units() const { return n_visual_units_; }

  /// The position of the first generated token.
  int64_t next_position() const { return next_position_; }

  /// Position of token `index` of a piece. 1-D rotary embedding: one step per token.
  int32_t position(const Piece& piece, int index) const {
    return static_cast<int32_t>(piece.first_position + index);
  }

 private:
  void add(Piece piece);

  std::vector<Piece> pieces_;
  int64_t n_tokens_ = 0;
  int64_t n_visual_tokens_ = 0;
  int n_visual_units_ = 0;
  int64_t next_position_ = 0;
};

}  // namespace plateau::engine

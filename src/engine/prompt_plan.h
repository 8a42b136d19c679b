// A prompt laid out before anything runs: pieces of text and visual units in order, with the
// position of every token. Pure; its size grows with the number of pieces, not of tokens.
// Tested by tests/engine/prompt_plan_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/visual_layout.h"
#include "kv/token_info.h"
#include "model/vocab.h"

namespace plateau::engine {

/// What a piece of the prompt is; decides what may be evicted.
enum class PieceKind {
  kText,    // instruction, question, template
  kMarker,  // text that frames a picture or film, such as <img> and </img>
  kLabel,   // text that names and frames one of a film's pictures
  kVisual,  // one unit of a picture or film
};

/// A run of tokens that belong together.
struct Piece {
  PieceKind kind = PieceKind::kText;
  std::vector<model::Token> tokens;  // text and markers
  int medium = -1;                   // visual: which picture or film, in prompt order
  int unit = -1;                     // visual: which unit of it
  UnitLayout layout;                 // visual: its tokens; the plane is one of the prompt
  int64_t first_position = 0;        // of its first token; M-RoPE: of its medium
  /// A marker that must not be parted from the piece after it.
  bool binds_next = false;

  int n_tokens() const {
    return kind == PieceKind::kVisual ? layout.n_tokens() : static_cast<int>(tokens.size());
  }
};

/// How positions are numbered.
///
/// kSequential: one step per token, a picture's included (1-D rotary embedding).
///
/// kMultimodal (M-RoPE, Qwen2-VL, arXiv:2409.12191, section 2.1): a position has three components.
/// A text token's are equal. In a picture or film that starts at position s, a token has
///   t = s + the unit's t, h = s + its row, w = s + its column
/// on the merged grid, and what follows goes on at the largest component + 1: a picture of R x C
/// tokens takes max(R, C) positions. Where blocks are cut changes nothing.
enum class PositionRule { kSequential, kMultimodal };

class PromptPlan {
 public:
  explicit PromptPlan(PositionRule rule = PositionRule::kSequential) : rule_(rule) {}

  /// For so many pieces, without copying.
  void reserve(size_t n_pieces) { pieces_.reserve(n_pieces); }
  /// Appends and assigns positions. Empty pieces are left out.
  void add_text(std::vector<model::Token> tokens);
  void add_marker(std::vector<model::Token> tokens, bool binds_next);
  void add_label(std::vector<model::Token> tokens, bool binds_next);
  /// The next picture or film. Its planes are numbered on from those before it.
  void begin_medium();
  /// Units of the medium begun last that follow each other, one piece each; M-RoPE positions start
  /// at the first. REQUIRES: begin_medium().
  void add_units(std::span<const UnitLayout> units);
  /// A medium without labels.
  void add_medium(const VisualLayout& layout);

  const std::vector<Piece>& pieces() const { return pieces_; }
  int64_t n_tokens() const { return n_tokens_; }
  int64_t n_visual_tokens() const { return n_visual_tokens_; }
  int64_t n_text_tokens() const { return n_tokens_ - n_visual_tokens_; }
  int n_visual_units() const { return n_visual_units_; }
  /// The prompt's plane that is the own grid (plane 0) of each picture or film.
  const std::vector<int>& own_planes() const { return own_planes_; }

  /// The position of the first generated token.
  int64_t next_position() const { return next_position_; }

  /// Position of token `index` of a piece. REQUIRES: next_position() <= INT32_MAX.
  kv::Position position(const Piece& piece, int index) const;

 private:
  void add(Piece piece);
  void add_tokens(PieceKind kind, std::vector<model::Token> tokens, bool binds_next);

  PositionRule rule_;
  std::vector<Piece> pieces_;
  std::vector<int> own_planes_;
  int n_planes_ = 0;
  int n_units_ = 0;  // of the medium begun last
  int64_t n_tokens_ = 0;
  int64_t n_visual_tokens_ = 0;
  int n_visual_units_ = 0;
  int64_t next_position_ = 0;
};

}  // namespace plateau::engine

// A prompt laid out before anything runs: pieces of text and visual units in order, with the
// position of every token. Pure; its size grows with the number of pieces, not of tokens, and with
// a film's slices by a few numbers each. Tested by tests/engine/prompt_plan_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "engine/visual_layout.h"
#include "kv/token_info.h"
#include "model/vocab.h"

namespace plateau::engine {

/// What a piece of the prompt is; decides what may be evicted.
enum class PieceKind : uint8_t {
  kText,    // instruction, question, template
  kMarker,  // text that frames a picture or film, such as <img> and </img>
  kLabel,   // text that names and frames one of a film's pictures
  kVisual,  // one unit of a picture or film
};

/// A run of tokens that belong together, as PromptPlan describes it when asked.
struct Piece {
  PieceKind kind = PieceKind::kText;
  /// A marker that must not be parted from the piece after it.
  bool binds_next = false;
  int medium = -1;                       // visual: which picture or film, in prompt order
  int unit = -1;                         // visual: which unit of it
  UnitLayout layout;                     // visual: its tokens; the plane is one of the prompt
  std::span<const model::Token> tokens;  // text and markers; the plan's
  int64_t first_token = 0;               // its place in the prompt
  int64_t first_position = 0;            // of its first token; M-RoPE: of its medium

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

/// The text around each slice of a film, for add_labelled_slices().
struct SliceText {
  std::vector<model::Token> tokens;  // before the slices, one after another
  std::vector<uint32_t> ends;        // of each slice's tokens among these
  model::Token close = 0;            // after each slice
};

class PromptPlan {
 public:
  class Pieces;

  explicit PromptPlan(PositionRule rule = PositionRule::kSequential) : rule_(rule) {}

  /// For so many texts and units, without copying.
  void reserve(size_t n_runs) { runs_.reserve(n_runs); }
  /// Appends and assigns positions. Empty pieces are left out.
  void add_text(const std::vector<model::Token>& tokens);
  void add_marker(const std::vector<model::Token>& tokens, bool binds_next);
  void add_label(const std::vector<model::Token>& tokens, bool binds_next);
  /// The next picture or film. Its planes are numbered on from those before it.
  void begin_medium();
  /// Units of the medium begun last that follow each other, one piece each; M-RoPE positions start
  /// at the first. REQUIRES: begin_medium().
  void add_units(std::span<const UnitLayout> units);
  /// Slices of the medium begun last: the same units again and again, each time on planes of their
  /// own, at temporal steps `t` (ascending). REQUIRES: begin_medium().
  void add_slices(const std::vector<UnitLayout>& units, std::vector<int32_t> t);
  /// The same with a label before and a closing marker after each slice, whose M-RoPE positions
  /// start anew.
  void add_labelled_slices(const std::vector<UnitLayout>& units, SliceText text);
  /// A medium without labels.
  void add_medium(const VisualLayout& layout);

  /// Valid until the plan changes.
  Pieces pieces() const;
  int64_t n_tokens() const { return n_tokens_; }
  int64_t n_visual_tokens() const { return n_visual_tokens_; }
  int64_t n_text_tokens() const { return n_tokens_ - n_visual_tokens_; }
  int n_visual_units() const { return n_visual_units_; }
  /// The prompt's plane that is the own grid (plane 0) of each picture or film.
  const std::vector<int>& own_planes() const { return own_planes_; }
  /// Memory that the plan holds.
  int64_t n_bytes() const;

  /// The position of the first generated token.
  int64_t next_position() const { return next_position_; }

  /// Position of token `index` of a piece. REQUIRES: next_position() <= INT32_MAX.
  kv::Position position(const Piece& piece, int index) const;

  /// The piece that holds a token of the prompt. REQUIRES: 0 <= token < n_tokens().
  size_t piece_of(int64_t token) const;

 private:
  /// Pieces that are described together: one of text, one unit, or all slices of a film.
  struct Run {
    size_t first_piece = 0;
    int64_t first_token = 0;
    int64_t first_position = 0;
    PieceKind kind = PieceKind::kText;
    bool binds_next = false;
    int medium = -1;
    int index = 0;           // text: its first token; a unit: which one of its medium; else: slices
    int n_text = 0;          // text: tokens
    UnitLayout layout = {};  // a unit's
    bool is_slices = false;
  };
  struct Slices {
    std::vector<UnitLayout> units;  // of each slice
    std::vector<int64_t>
        unit_offsets;        // tokens of a slice before each unit, and at last all of them
    std::vector<int32_t> t;  // of each slice after the first one
    SliceText text;          // labelled: `ends` is not empty
    int n_slices = 0;
    int n_planes = 0;  // of each slice
    int span = 0;      // M-RoPE positions of a slice, labelled

    bool labelled() const { return !text.ends.empty(); }
    int n_parts() const { return static_cast<int>(units.size()) + (labelled() ? 2 : 0); }
    int64_t label_begin(int slice) const {
      return slice == 0 || !labelled() ? 0 : text.ends[static_cast<size_t>(slice) - 1];
    }
    /// Tokens of the run before a slice.
    int64_t first_token(int slice) const {
      return label_begin(slice) + int64_t{slice} * (unit_offsets.back() + (labelled() ? 1 : 0));
    }
  };

  Run next_run() const;
  void add(Run run, int64_t n_tokens, size_t n_pieces);
  void add_tokens(PieceKind kind, const std::vector<model::Token>& tokens, bool binds_next);
  void add_slices(Slices slices);
  Piece piece(size_t i) const;
  Piece slice_piece(const Run& run, size_t i) const;
  /// Positions that units of a medium take, counted from its start.
  static int64_t extent(const UnitLayout& unit, int64_t t);

  PositionRule rule_;
  std::vector<Run> runs_;
  std::vector<Slices> slices_;
  std::vector<model::Token> tokens_;  // of texts
  std::vector<int> own_planes_;
  int n_planes_ = 0;
  int n_units_ = 0;  // of the medium begun last
  size_t n_pieces_ = 0;
  int64_t n_tokens_ = 0;
  int64_t n_visual_tokens_ = 0;
  int n_visual_units_ = 0;
  int64_t next_position_ = 0;
};

/// The pieces in order, each described anew when it is looked at.
class PromptPlan::Pieces {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Piece;
    using difference_type = std::ptrdiff_t;
    using pointer = const Piece*;
    using reference = Piece;

    Iterator(const PromptPlan& plan, size_t i) : plan_(&plan), i_(i) {}
    Piece operator*() const { return plan_->piece(i_); }
    Iterator& operator++() {
      ++i_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++i_;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.i_ == b.i_; }

   private:
    const PromptPlan* plan_;
    size_t i_;
  };

  explicit Pieces(const PromptPlan& plan) : plan_(&plan) {}
  size_t size() const { return plan_->n_pieces_; }
  bool empty() const { return size() == 0; }
  Piece operator[](size_t i) const { return plan_->piece(i); }
  Iterator begin() const { return {*plan_, 0}; }
  Iterator end() const { return {*plan_, size()}; }

 private:
  const PromptPlan* plan_;
};

inline PromptPlan::Pieces PromptPlan::pieces() const { return Pieces(*this); }

}  // namespace plateau::engine

#include "engine/prompt_plan.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace plateau::engine {
namespace {

template <typename T>
int64_t bytes_of(const std::vector<T>& vector) {
  return static_cast<int64_t>(vector.capacity() * sizeof(T));
}

void check_unit(const UnitLayout& unit) {
  PLATEAU_CHECK(unit.n_grid_rows >= 1 && unit.n_grid_cols >= 1 && unit.plane >= 0);
  PLATEAU_CHECK(unit.grid_h0 >= 0 && unit.grid_w0 >= 0);
}

}  // namespace

PromptPlan::Run PromptPlan::next_run() const {
  Run run;
  run.first_piece = n_pieces_;
  run.first_token = n_tokens_;
  run.first_position = next_position_;
  return run;
}

void PromptPlan::add(Run run, int64_t n_tokens, size_t n_pieces) {
  n_tokens_ += n_tokens;
  n_pieces_ += n_pieces;
  runs_.push_back(run);
}

void PromptPlan::add_tokens(PieceKind kind, const std::vector<model::Token>& tokens,
                            bool binds_next) {
  if (tokens.empty()) return;
  Run run = next_run();
  run.kind = kind;
  run.binds_next = binds_next;
  run.index = static_cast<int>(tokens_.size());
  run.n_text = static_cast<int>(tokens.size());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  next_position_ += run.n_text;
  add(run, run.n_text, 1);
}

void PromptPlan::add_text(const std::vector<model::Token>& tokens) {
  add_tokens(PieceKind::kText, tokens, /*binds_next=*/false);
}

void PromptPlan::add_marker(const std::vector<model::Token>& tokens, bool binds_next) {
  add_tokens(PieceKind::kMarker, tokens, binds_next);
}

void PromptPlan::add_label(const std::vector<model::Token>& tokens, bool binds_next) {
  add_tokens(PieceKind::kLabel, tokens, binds_next);
}

void PromptPlan::begin_medium() {
  own_planes_.push_back(n_planes_);
  n_units_ = 0;
}

int64_t PromptPlan::extent(const UnitLayout& unit, int64_t t) {
  return 1 + std::max({t, int64_t{unit.grid_h0} + unit.n_grid_rows - 1,
                       int64_t{unit.grid_w0} + unit.n_grid_cols - 1});
}

void PromptPlan::add_units(std::span<const UnitLayout> units) {
  PLATEAU_CHECK(!units.empty() && !own_planes_.empty());
  const int64_t start = next_position_;
  for (const UnitLayout& unit : units) {
    check_unit(unit);
    PLATEAU_CHECK(unit.t >= units.front().t);
    Run run = next_run();
    run.kind = PieceKind::kVisual;
    run.medium = static_cast<int>(own_planes_.size()) - 1;
    run.index = n_units_++;
    run.layout = unit;
    run.layout.plane += own_planes_.back();
    run.layout.t -= units.front().t;
    n_planes_ = std::max(n_planes_, run.layout.plane + 1);
    const int n = unit.n_tokens();
    if (rule_ == PositionRule::kSequential) {
      next_position_ += n;
    } else {
      run.first_position = start;
      next_position_ = std::max(next_position_, start + extent(unit, run.layout.t));
    }
    n_visual_tokens_ += n;
    ++n_visual_units_;
    add(run, n, 1);
  }
}

void PromptPlan::add_slices(const std::vector<UnitLayout>& units, std::vector<int32_t> t) {
  PLATEAU_CHECK(!t.empty() && std::is_sorted(t.begin(), t.end()));
  const int32_t first = t.front();
  for (int32_t& step : t) step -= first;
  Slices slices;
  slices.units = units;
  slices.n_slices = static_cast<int>(t.size());
  slices.t = std::move(t);
  add_slices(std::move(slices));
}

void PromptPlan::add_labelled_slices(const std::vector<UnitLayout>& units, SliceText text) {
  PLATEAU_CHECK(!text.ends.empty() && std::is_sorted(text.ends.begin(), text.ends.end()));
  PLATEAU_CHECK(text.ends.front() > 0 && text.ends.back() == text.tokens.size());
  Slices slices;
  slices.units = units;
  slices.n_slices = static_cast<int>(text.ends.size());
  slices.text = std::move(text);
  add_slices(std::move(slices));
}

void PromptPlan::add_slices(Slices slices) {
  PLATEAU_CHECK(!slices.units.empty() && !own_planes_.empty());
  int64_t n_slice = 0;
  for (const UnitLayout& unit : slices.units) {
    check_unit(unit);
    PLATEAU_CHECK(unit.t == 0);
    slices.unit_offsets.push_back(n_slice);
    n_slice += unit.n_tokens();
    slices.n_planes = std::max(slices.n_planes, unit.plane + 1);
    slices.span = std::max(slices.span, static_cast<int>(extent(unit, /*t=*/0)));
  }
  slices.unit_offsets.push_back(n_slice);

  const int n = slices.n_slices;
  Run run = next_run();
  run.kind = PieceKind::kVisual;
  run.medium = static_cast<int>(own_planes_.size()) - 1;
  run.index = static_cast<int>(slices_.size());
  run.is_slices = true;
  PLATEAU_CHECK(n_units_ == 0 && n_planes_ == own_planes_.back());
  n_units_ = n * static_cast<int>(slices.units.size());
  n_planes_ += n * slices.n_planes;
  n_visual_tokens_ += n * n_slice;
  n_visual_units_ += n_units_;
  const int64_t n_tokens = slices.first_token(n);
  if (rule_ == PositionRule::kSequential) {
    next_position_ += n_tokens;
  } else if (slices.labelled()) {
    next_position_ += slices.label_begin(n) + int64_t{n} * (slices.span + 1);
  } else {
    for (const UnitLayout& unit : slices.units) {
      next_position_ = std::max(next_position_, run.first_position + extent(unit, slices.t.back()));
    }
  }
  const auto n_pieces = static_cast<size_t>(n) * static_cast<size_t>(slices.n_parts());
  slices_.push_back(std::move(slices));
  add(run, n_tokens, n_pieces);
}

void PromptPlan::add_medium(const VisualLayout& layout) {
  begin_medium();
  if (layout.slice_t.empty()) {
    add_units(layout.units);
  } else {
    add_slices(layout.units, layout.slice_t);
  }
}

int64_t PromptPlan::n_bytes() const {
  int64_t bytes = bytes_of(runs_) + bytes_of(slices_) + bytes_of(tokens_) + bytes_of(own_planes_);
  for (const Slices& slices : slices_) {
    bytes += bytes_of(slices.units) + bytes_of(slices.unit_offsets) + bytes_of(slices.t) +
             bytes_of(slices.text.tokens) + bytes_of(slices.text.ends);
  }
  return bytes;
}

Piece PromptPlan::piece(size_t i) const {
  PLATEAU_CHECK(i < n_pieces_);
  const auto after =
      std::upper_bound(runs_.begin(), runs_.end(), i,
                       [](size_t wanted, const Run& run) { return wanted < run.first_piece; });
  const Run& run = *std::prev(after);
  if (run.is_slices) return slice_piece(run, i - run.first_piece);
  Piece piece;
  piece.kind = run.kind;
  piece.binds_next = run.binds_next;
  piece.first_token = run.first_token;
  piece.first_position = run.first_position;
  if (run.kind == PieceKind::kVisual) {
    piece.medium = run.medium;
    piece.unit = run.index;
    piece.layout = run.layout;
  } else {
    piece.tokens =
        std::span(tokens_).subspan(static_cast<size_t>(run.index), static_cast<size_t>(run.n_text));
  }
  return piece;
}

Piece PromptPlan::slice_piece(const Run& run, size_t i) const {
  const Slices& slices = slices_[static_cast<size_t>(run.index)];
  const int n_units = static_cast<int>(slices.units.size());
  const int slice = static_cast<int>(i) / slices.n_parts();
  const int part = static_cast<int>(i) % slices.n_parts() - (slices.labelled() ? 1 : 0);
  const int64_t begin = slices.label_begin(slice);
  const int64_t n_label = slices.label_begin(slice + 1) - begin;

  Piece piece;
  int64_t offset = slices.first_token(slice);  // of the piece, in the run's tokens
  int64_t position = begin + int64_t{slice} * (slices.span + 1);  // M-RoPE, labelled
  if (part < 0) {
    piece.kind = PieceKind::kLabel;
    piece.binds_next = true;
    piece.tokens = std::span(slices.text.tokens)
                       .subspan(static_cast<size_t>(begin), static_cast<size_t>(n_label));
  } else if (part == n_units) {
    piece.kind = PieceKind::kLabel;
    piece.tokens = {&slices.text.close, 1};
    offset += n_label + slices.unit_offsets.back();
    position += n_label + slices.span;
  } else {
    piece.kind = PieceKind::kVisual;
    piece.medium = run.medium;
    piece.unit = slice * n_units + part;
    piece.layout = slices.units[static_cast<size_t>(part)];
    piece.layout.plane += own_planes_[static_cast<size_t>(run.medium)] + slice * slices.n_planes;
    if (!slices.labelled()) piece.layout.t = slices.t[static_cast<size_t>(slice)];
    offset += n_label + slices.unit_offsets[static_cast<size_t>(part)];
    position += n_label;
  }
  piece.first_token = run.first_token + offset;
  if (rule_ == PositionRule::kSequential) {
    piece.first_position = run.first_position + offset;
  } else {
    piece.first_position = run.first_position + (slices.labelled() ? position : 0);
  }
  return piece;
}

size_t PromptPlan::piece_of(int64_t token) const {
  PLATEAU_CHECK(token >= 0 && token < n_tokens_);
  const auto after =
      std::upper_bound(runs_.begin(), runs_.end(), token,
                       [](int64_t wanted, const Run& run) { return wanted < run.first_token; });
  const Run& run = *std::prev(after);
  if (!run.is_slices) return run.first_piece;
  const Slices& slices = slices_[static_cast<size_t>(run.index)];
  const int64_t in_run = token - run.first_token;
  // The last slice that begins at or before the token.
  int slice = 0;
  for (int end = slices.n_slices; end - slice > 1;) {
    const int middle = slice + (end - slice) / 2;
    (slices.first_token(middle) <= in_run ? slice : end) = middle;
  }
  const int64_t n_label = slices.label_begin(slice + 1) - slices.label_begin(slice);
  const int64_t in_units = in_run - slices.first_token(slice) - n_label;
  const size_t first =
      run.first_piece + static_cast<size_t>(slice) * static_cast<size_t>(slices.n_parts());
  if (in_units < 0) return first;  // the label
  const auto& offsets = slices.unit_offsets;
  const auto unit =
      std::upper_bound(offsets.begin(), offsets.end(), in_units) - offsets.begin() - 1;
  return first + (slices.labelled() ? 1 : 0) + static_cast<size_t>(unit);
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

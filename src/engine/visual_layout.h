// How a picture or film lies in the prompt: the contract between what reads media and what lays out
// tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/vocab.h"

namespace plateau::engine {

/// The tokens that are encoded together and stand together: a tile, a band of whole rows of a
/// picture, one slice of a film. n_grid_rows x n_grid_cols tokens in reading order.
struct UnitLayout {
  int n_grid_rows = 1;
  int n_grid_cols = 1;
  int grid_h0 = 0;  // of its first token on its plane's token grid
  int grid_w0 = 0;
  /// Which token grid of the medium it lies on. 0: the medium's own, the picture or a film's first
  /// slice; others: a thumbnail, or a later slice of a film. Small numbers, without gaps.
  int plane = 0;
  /// Temporal steps after the medium's first position (M-RoPE); grows with the slice.
  int t = 0;

  int n_tokens() const { return n_grid_rows * n_grid_cols; }
};

/// Tokens that stand before a unit in place of the family's markers; `unit` == number of units:
/// behind the last one.
struct UnitMarker {
  int unit = 0;
  std::vector<model::Token> tokens;
};

/// One picture or film: its units in prompt order.
struct VisualLayout {
  std::vector<UnitLayout> units;  // of a film: of each of its slices
  /// Of a film: the temporal steps of its slices, ascending.
  std::vector<int32_t> slice_t = {};
  /// Instead, for families that lay a film out as a row of numbered or timed pictures: plain text
  /// before each slice ("Frame1: "), outside the slice's own markers. M-RoPE positions start anew.
  std::vector<std::string> slice_labels = {};
  /// Whether the picture brings its markers, ascending by unit; a family's are not added then.
  bool has_own_markers = false;
  std::vector<UnitMarker> markers = {};
};

}  // namespace plateau::engine

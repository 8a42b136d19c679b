// Streaming bicubic resize of 8-bit RGB rows, bit for bit what Pillow's BICUBIC yields: the vision
// models were trained on pictures resized by it.
//
// Why not vips_resize: it rounds sampling positions to 1/64 pixel, repeats the edge pixels where
// Pillow renormalises the weights, and takes another path for enlarging; and a reader needs the
// grid and the thumbnail out of one pass over the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plateau::media {

/// For each output coordinate, the input range [first, first + n) and its fixed-point weights.
class AxisWeights {
 public:
  AxisWeights(int in_size, int out_size);

  bool identity() const { return in_size_ == out_size_; }
  int out_size() const { return out_size_; }
  /// The most inputs that any output needs.
  int max_taps() const { return max_taps_; }
  int first(int out) const { return first_[static_cast<size_t>(out)]; }
  int n(int out) const { return n_[static_cast<size_t>(out)]; }
  const int32_t* weights(int out) const {
    return weights_.data() + static_cast<size_t>(out) * static_cast<size_t>(max_taps_);
  }

 private:
  int in_size_;
  int out_size_;
  int max_taps_ = 0;
  std::vector<int32_t> first_;    // [out_size]; empty for the identity, as are the next two
  std::vector<int32_t> n_;        // [out_size]
  std::vector<int32_t> weights_;  // [out_size, max_taps]
};

/// Push input rows until ready(), then pop output rows until it is not. Holds at most
/// max_taps() + 1 rows of the output's width.
class Resampler {
 public:
  Resampler(int in_width, int in_height, int out_width, int out_height);

  /// Whether the next output row can be popped.
  bool ready() const;
  /// True after the last output row.
  bool done() const { return out_y_ == vertical_.out_size(); }
  /// `row` is [in_width * 3]. REQUIRES: !ready(), or done().
  void push(const uint8_t* row);
  /// Writes [out_width * 3] bytes. REQUIRES: ready().
  void pop(uint8_t* out);

 private:
  uint8_t* slot(int in_y);

  AxisWeights horizontal_;
  AxisWeights vertical_;
  size_t out_row_bytes_;
  int n_slots_;
  std::vector<uint8_t> rows_;  // [n_slots, out_width * 3]: a ring of rows already resized in x
  std::vector<int32_t> sums_;  // [out_width * 3]
  int in_y_ = 0;
  int out_y_ = 0;
};

}  // namespace plateau::media

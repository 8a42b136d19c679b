// The order in which a window-attention tower holds its tokens: window after window, windows of
// equal shape together, so that any run of windows of one shape is one batch without a mask.
// Pure arithmetic. Tested by tests/vision/window_order_test.cc.
#pragma once

#include <cstdint>
#include <vector>

namespace plateau::vision {

/// Windows lie on a grid from the top left; those at the right and bottom edge may be smaller.
/// Four shapes at most: inner, right edge, bottom edge, corner, in this order.
class WindowOrder {
 public:
  /// An area of n_rows x n_cols tokens. REQUIRES: all positive.
  WindowOrder(int n_rows, int n_cols, int window_tokens);

  struct Place {
    int row;
    int col;
  };
  struct Shape {
    int64_t first_token;  // of its first window
    int n_windows;
    int n_tokens;  // of one window
  };
  struct Run {
    int64_t first_token;
    int64_t n_tokens;
  };

  /// Where each token stands on the area's grid, in window order.
  const std::vector<Place>& places() const { return places_; }
  /// The shapes that occur.
  const std::vector<Shape>& shapes() const { return shapes_; }
  int64_t n_tokens() const { return static_cast<int64_t>(places_.size()); }

  /// The window rows, from top to bottom, and what each covers: the rows of tokens, and the runs of
  /// window order that hold its tokens.
  int n_window_rows() const { return (n_rows_ + window_ - 1) / window_; }
  int first_row(int window_row) const { return window_row * window_; }
  int n_rows(int window_row) const;
  std::vector<Run> runs(int window_row) const;

 private:
  void add_shape(int first_row, int first_col, int n_down, int n_across, int height, int width);

  int n_rows_;
  int n_cols_;
  int window_;
  std::vector<Place> places_;
  std::vector<Shape> shapes_;
};

}  // namespace plateau::vision

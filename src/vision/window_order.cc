#include "vision/window_order.h"

#include <algorithm>

#include "base/check.h"

namespace plateau::vision {

WindowOrder::WindowOrder(int n_rows, int n_cols, int window_tokens)
    : n_rows_(n_rows), n_cols_(n_cols), window_(window_tokens) {
  PLATEAU_CHECK(n_rows >= 1 && n_cols >= 1 && window_tokens >= 1);
  places_.reserve(static_cast<size_t>(n_rows) * static_cast<size_t>(n_cols));
  const int down = n_rows / window_;
  const int across = n_cols / window_;
  const int bottom = n_rows % window_;
  const int right = n_cols % window_;
  add_shape(0, 0, down, across, window_, window_);
  add_shape(0, across * window_, down, 1, window_, right);
  add_shape(down * window_, 0, 1, across, bottom, window_);
  add_shape(down * window_, across * window_, 1, 1, bottom, right);
}

void WindowOrder::add_shape(int first_row, int first_col, int n_down, int n_across, int height,
                            int width) {
  if (n_down * n_across == 0 || height * width == 0) return;
  shapes_.push_back({n_tokens(), n_down * n_across, height * width});
  for (int down = 0; down < n_down; ++down) {
    for (int across = 0; across < n_across; ++across) {
      for (int row = 0; row < height; ++row) {
        for (int col = 0; col < width; ++col) {
          places_.push_back({first_row + down * window_ + row, first_col + across * window_ + col});
        }
      }
    }
  }
}

int WindowOrder::n_rows(int window_row) const {
  return std::min(window_, n_rows_ - first_row(window_row));
}

std::vector<WindowOrder::Run> WindowOrder::runs(int window_row) const {
  PLATEAU_CHECK(window_row >= 0 && window_row < n_window_rows());
  const int down = n_rows_ / window_;
  const bool is_bottom = window_row == down;
  std::vector<Run> result;
  for (const Shape& shape : shapes_) {
    // The shapes of the bottom row begin there; the others have the same share in every row.
    const bool at_bottom = places_[static_cast<size_t>(shape.first_token)].row == down * window_;
    if (at_bottom != is_bottom) continue;
    const int64_t n_rows_of_shape = at_bottom ? 1 : down;
    const int64_t n = int64_t{shape.n_windows} * shape.n_tokens / n_rows_of_shape;
    result.push_back({shape.first_token + (at_bottom ? 0 : window_row) * n, n});
  }
  return result;
}

}  // namespace plateau::vision

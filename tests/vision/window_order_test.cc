#include "vision/window_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

namespace plateau::vision {
namespace {

constexpr int kWindow = 4;

class WindowOrderTest : public testing::TestWithParam<std::pair<int, int>> {
 protected:
  int n_rows_ = GetParam().first;
  int n_cols_ = GetParam().second;
  WindowOrder order_{n_rows_, n_cols_, kWindow};
};

TEST_P(WindowOrderTest, HoldsEveryTokenOnce) {
  ASSERT_EQ(order_.n_tokens(), int64_t{n_rows_} * n_cols_);
  std::set<std::pair<int, int>> seen;
  for (const WindowOrder::Place& place : order_.places()) {
    EXPECT_TRUE(place.row >= 0 && place.row < n_rows_ && place.col >= 0 && place.col < n_cols_);
    EXPECT_TRUE(seen.emplace(place.row, place.col).second);
  }
}

// A window of a shape is one window of the grid, all of it, row by row.
TEST_P(WindowOrderTest, ShapesAreRunsOfWholeWindows) {
  int64_t next = 0;
  for (const WindowOrder::Shape& shape : order_.shapes()) {
    EXPECT_EQ(shape.first_token, next);
    for (int i = 0; i < shape.n_windows; ++i) {
      const auto first = static_cast<size_t>(next);
      const WindowOrder::Place origin = order_.places()[first];
      const int height = std::min(kWindow, n_rows_ - origin.row);
      const int width = std::min(kWindow, n_cols_ - origin.col);
      EXPECT_TRUE(origin.row % kWindow == 0 && origin.col % kWindow == 0);
      ASSERT_EQ(shape.n_tokens, height * width);
      for (int token = 0; token < shape.n_tokens; ++token) {
        const WindowOrder::Place place = order_.places()[first + static_cast<size_t>(token)];
        EXPECT_EQ(place.row, origin.row + token / width);
        EXPECT_EQ(place.col, origin.col + token % width);
      }
      next += shape.n_tokens;
    }
  }
  EXPECT_EQ(next, order_.n_tokens());
  EXPECT_LE(order_.shapes().size(), 4U);
}

TEST_P(WindowOrderTest, RunsOfAWindowRowHoldItsTokens) {
  int64_t n_total = 0;
  int row = 0;
  for (int window_row = 0; window_row < order_.n_window_rows(); ++window_row) {
    EXPECT_EQ(order_.first_row(window_row), row);
    for (const WindowOrder::Run& run : order_.runs(window_row)) {
      for (int64_t i = 0; i < run.n_tokens; ++i) {
        const WindowOrder::Place place = order_.places()[static_cast<size_t>(run.first_token + i)];
        EXPECT_TRUE(place.row >= row && place.row < row + order_.n_rows(window_row));
      }
      n_total += run.n_tokens;
    }
    row += order_.n_rows(window_row);
  }
  EXPECT_EQ(row, n_rows_);
  EXPECT_EQ(n_total, order_.n_tokens());
}

INSTANTIATE_TEST_SUITE_P(Sizes, WindowOrderTest,
                         testing::Values(std::pair(4, 4), std::pair(1, 1), std::pair(1, 9),
                                         std::pair(9, 1), std::pair(3, 3), std::pair(8, 12),
                                         std::pair(7, 5), std::pair(5, 8), std::pair(8, 5),
                                         std::pair(21, 34)));

}  // namespace
}  // namespace plateau::vision

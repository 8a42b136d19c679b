#include "eval/grid.h"

#include <gtest/gtest.h>

#include "eval_test_support.h"

namespace plateau::eval {
namespace {

TEST(CellGrid, IsTheTilersAtNativeDetail) {
  struct Case {
    int64_t width, height;
    int n_cols, n_rows;
  };
  for (const Case& c : {Case{3840, 2160, 34, 19}, Case{7680, 4320, 68, 38}, Case{112, 112, 1, 1},
                        Case{114, 115, 1, 2}, Case{3808, 2128, 34, 19}}) {
    const CellGrid grid(c.width, c.height, 112, 0, 0);
    EXPECT_EQ(grid.n_cols(), c.n_cols) << c.width;
    EXPECT_EQ(grid.n_rows(), c.n_rows) << c.height;
  }
}

TEST(CellGrid, BordersCoverThePicture) {
  const CellGrid grid(1001, 703, 112, 0, 0);
  EXPECT_EQ(grid.left(0), 0);
  EXPECT_EQ(grid.left(grid.n_cols()), 1001);
  EXPECT_EQ(grid.top(grid.n_rows()), 703);
  for (int col = 0; col < grid.n_cols(); ++col) {
    const int64_t cell_width = grid.left(col + 1) - grid.left(col);
    EXPECT_NEAR(static_cast<double>(cell_width), 112 * grid.x_scale(), 1.0);
  }
}

TEST(CellGrid, TakesTheCallersGrid) {
  const CellGrid grid(4000, 3000, 448, 4, 3);
  EXPECT_EQ(grid.n_cells(), 12);
  EXPECT_DOUBLE_EQ(grid.x_scale(), 4000.0 / 1792);
}

TEST(CellGrid, RefusesWhatCannotHoldAnObject) {
  const auto code = [](int64_t width, int64_t height, int cell, int n_cols, int n_rows) {
    return code_of([=] { CellGrid(width, height, cell, n_cols, n_rows); });
  };
  EXPECT_EQ(code(1, 1, 112, 0, 0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(0, 100, 112, 0, 0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(-5, 100, 112, 0, 0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(1'000'001, 100, 112, 0, 0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(3840, 20, 112, 0, 0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(3840, 2160, 28, 0, 0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(3840, 2160, 112, 3, 0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(3840, 2160, 112, -1, -1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(3840, 2160, 112, 100, 19), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(1'000'000, 112, 112, 1, 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code(1'000'000, 8000, 112, 200, 1), ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace plateau::eval

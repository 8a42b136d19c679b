// Tested by grid_test.cc.
#include "eval/grid.h"

#include "base/check.h"

namespace plateau::eval {
namespace {

// An object is up to 90 tile pixels high with its label.
constexpr int kMinCell = 96;
constexpr int kMaxCell = 4096;
// Below libvips' limit of 10^7 pixels a side.
constexpr int64_t kMaxSide = 1'000'000;
// A caller's grid may be coarser than the picture; objects grow with its cells, and two rows of
// cells are in memory.
constexpr int64_t kMaxCellInPicture = 8192;
constexpr int64_t kMaxRowPixels = 200'000'000;

/// Fewest n with n * cell >= 0.98 * side, in whole numbers.
int cells_along(int64_t side, int cell) {
  const int64_t step = int64_t{100} * cell;
  return static_cast<int>((98 * side + step - 1) / step);
}

void check_axis(const char* name, int64_t side, int cell, int n_cells) {
  if (n_cells > side || side * 2 < int64_t{n_cells} * cell) {
    throw_error(ErrorCode::kInvalidArgument,
                "[needle] expected a {} of at least {} pixels ({} cells of half of {}), got {}; "
                "the objects would be too small to read; try a larger picture",
                name, (int64_t{n_cells} * cell + 1) / 2, n_cells, cell, side);
  }
  if (side > n_cells * kMaxCellInPicture) {
    throw_error(ErrorCode::kInvalidArgument,
                "[needle] expected a {} of at most {} pixels per cell, got {} for {} cells; try a "
                "finer grid",
                name, kMaxCellInPicture, side, n_cells);
  }
}

}  // namespace

CellGrid::CellGrid(int64_t width, int64_t height, int cell, int n_cols, int n_rows)
    : width_(width), height_(height), cell_(cell), n_cols_(n_cols), n_rows_(n_rows) {
  if (width < 1 || height < 1 || width > kMaxSide || height > kMaxSide) {
    throw_error(ErrorCode::kInvalidArgument,
                "[needle] expected a picture of 1 to {} pixels a side, got {}x{}", kMaxSide, width,
                height);
  }
  if (cell < kMinCell || cell > kMaxCell) {
    throw_error(ErrorCode::kInvalidArgument, "[needle] expected a cell of {} to {} pixels, got {}",
                kMinCell, kMaxCell, cell);
  }
  if (n_cols == 0 && n_rows == 0) {
    n_cols_ = cells_along(width, cell);
    n_rows_ = cells_along(height, cell);
  }
  if (n_cols_ < 1 || n_rows_ < 1) {
    throw_error(ErrorCode::kInvalidArgument,
                "[needle] expected a grid with columns and rows, got {}x{}; leave both 0 for the "
                "grid of native detail",
                n_cols, n_rows);
  }
  check_axis("width", width, cell, n_cols_);
  check_axis("height", height, cell, n_rows_);
  if (width * (height / n_rows_ + 1) > kMaxRowPixels) {
    throw_error(ErrorCode::kResourceExhausted,
                "[needle] expected at most {} pixels in a row of cells, got {}; try a finer grid",
                kMaxRowPixels, width * (height / n_rows_ + 1));
  }
}

double CellGrid::x_scale() const {
  return static_cast<double>(width_) / (static_cast<double>(n_cols_) * cell_);
}

double CellGrid::y_scale() const {
  return static_cast<double>(height_) / (static_cast<double>(n_rows_) * cell_);
}

int64_t CellGrid::left(int col) const { return (2 * col * width_ + n_cols_) / (2 * n_cols_); }

int64_t CellGrid::top(int row) const { return (2 * row * height_ + n_rows_) / (2 * n_rows_); }

}  // namespace plateau::eval

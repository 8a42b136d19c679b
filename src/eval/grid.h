// The grid that the tiler will cut a picture into, seen from the picture's side: cells with
// fractional borders. Pure arithmetic.
#pragma once

#include <cstdint>

namespace plateau::eval {

/// Half-open box of whole pixels.
struct PixelBox {
  int64_t x = 0;
  int64_t y = 0;
  int64_t width = 0;
  int64_t height = 0;
};

/// The tiler resizes the picture to [n_cols * cell, n_rows * cell] pixels. "Tile pixels" are
/// pixels of that resized picture.
class CellGrid {
 public:
  /// Zero n_cols and n_rows: the fewest cells that shrink neither side by more than 2 %, which is
  /// the rule of media::plan_tiles at native detail.
  /// Errors: kInvalidArgument when a number is out of range, only one of n_cols and n_rows is
  /// given, or a cell is so small in the picture that a digit cannot be read in it, or too large to
  /// draw; kResourceExhausted when a row of cells would not fit in memory.
  CellGrid(int64_t width, int64_t height, int cell, int n_cols, int n_rows);

  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  int cell() const { return cell_; }
  int n_cols() const { return n_cols_; }
  int n_rows() const { return n_rows_; }
  int64_t n_cells() const { return int64_t{n_cols_} * n_rows_; }

  /// Picture pixels per tile pixel.
  double x_scale() const;
  double y_scale() const;

  /// First picture row and column of a cell, rounded; the n-th is the picture's side.
  int64_t left(int col) const;
  int64_t top(int row) const;

 private:
  int64_t width_;
  int64_t height_;
  int cell_;
  int n_cols_;
  int n_rows_;
};

}  // namespace plateau::eval

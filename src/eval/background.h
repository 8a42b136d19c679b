// The procedural backdrop of one cell: what the pico model's tower was trained on. A gradient with
// noise, up to four random shapes, sometimes blurred. Whole numbers only: the same bytes on every
// platform.
#pragma once

#include <cstdint>

#include "eval/canvas.h"
#include "eval/grid.h"
#include "eval/rng.h"

namespace plateau::eval {

/// Paints every pixel of `view`, which is one cell; shapes grow with it.
void paint_background(RgbView view, Rng rng);

/// One row of cells, each from a stream of its own: a band can be painted again, in any order.
/// `band` holds that row of the picture.
void paint_cells(const CellGrid& grid, uint64_t seed, int row, RgbView band);

}  // namespace plateau::eval

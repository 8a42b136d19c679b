// The procedural backdrop of one cell: what the pico model's tower was trained on. A gradient with
// noise, up to four random shapes, sometimes blurred. Whole numbers only: the same bytes on every
// platform.
#pragma once

#include "eval/canvas.h"
#include "eval/rng.h"

namespace plateau::eval {

/// Paints every pixel of `view`, which is one cell; shapes grow with it.
void paint_background(RgbView view, Rng rng);

}  // namespace plateau::eval

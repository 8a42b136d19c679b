// Nearly Gaussian blur in whole numbers: the same bytes on every platform, which SIMD filters of
// image libraries do not promise.
#pragma once

#include "eval/canvas.h"

namespace plateau::eval {

/// Blurs in place; beyond the borders the border pixel is repeated. REQUIRES: 1 <= sigma <= 8.
void gaussian_blur(RgbView view, int sigma);

}  // namespace plateau::eval

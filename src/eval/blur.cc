// Tested by background_test.cc.
#include "eval/blur.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace plateau::eval {
namespace {

constexpr int kMaxSigma = 8;

/// A box of side 2r + 1 has variance r(r + 1) / 3. Twice over with r = sigma it is a triangle of
/// deviation 1.15, 2.0 and 3.7 for sigma 1, 2 and 4: near enough for a backdrop.
constexpr int kPasses = 2;

/// One running-mean pass over `length` samples that lie `step` bytes apart.
void box_pass(uint8_t* first, int64_t length, int64_t step, int radius,
              std::vector<uint8_t>& line) {
  line.resize(static_cast<size_t>(length + 2 * radius));
  for (int64_t i = 0; i < static_cast<int64_t>(line.size()); ++i) {
    line[i] = first[std::clamp<int64_t>(i - radius, 0, length - 1) * step];
  }
  const int side = 2 * radius + 1;
  int sum = 0;
  for (int i = 0; i < side; ++i) sum += line[i];
  for (int64_t i = 0; i < length; ++i) {
    first[i * step] = static_cast<uint8_t>((sum + radius) / side);
    if (i + 1 < length) sum += line[i + side] - line[i];
  }
}

}  // namespace

void gaussian_blur(RgbView view, int sigma) {
  PLATEAU_CHECK(sigma >= 1 && sigma <= kMaxSigma);
  std::vector<uint8_t> line;
  for (int pass = 0; pass < kPasses; ++pass) {
    for (int channel = 0; channel < 3; ++channel) {
      for (int64_t y = 0; y < view.height; ++y) {
        box_pass(view.row(y) + channel, view.width, 3, sigma, line);
      }
      for (int64_t x = 0; x < view.width; ++x) {
        box_pass(view.pixels + x * 3 + channel, view.height, view.stride_bytes, sigma, line);
      }
    }
  }
}

}  // namespace plateau::eval

// Tested by background_test.cc.
#include "eval/background.h"

#include <algorithm>
#include <array>

#include "eval/blur.h"

namespace plateau::eval {
namespace {

// Positions and sizes below are those of the training tiles, in pixels of a 112-pixel tile.
constexpr int kTrainingCell = 112;
constexpr std::array<int, 3> kNoise = {2, 8, 20};
constexpr std::array<int, 3> kSigma = {1, 2, 4};

uint8_t clamp_byte(int64_t value) {
  return static_cast<uint8_t>(std::clamp<int64_t>(value, 0, 255));
}

/// Sum of the four bytes of `bits`: nearly normal, mean 510, deviation 147.8.
int byte_sum(uint32_t bits) {
  const uint32_t pairs = (bits & 0x00ff00ffU) + ((bits >> 8) & 0x00ff00ffU);
  return static_cast<int>((pairs & 0xffffU) + (pairs >> 16));
}

int noise(uint32_t bits, int deviation) { return (byte_sum(bits) - 510) * deviation / 148; }

void paint_gradient(RgbView view, Rng& rng) {
  std::array<int, 3> base{};
  std::array<int, 3> slope{};
  for (int& value : base) value = rng.range(0, 256);
  for (int& value : slope) value = rng.range(-60, 60);
  const bool downwards = rng.coin();
  const int deviation = kNoise[rng.below(kNoise.size())];
  const int64_t last = std::max<int64_t>(1, (downwards ? view.height : view.width) - 1);
  for (int64_t y = 0; y < view.height; ++y) {
    uint8_t* pixel = view.row(y);
    for (int64_t x = 0; x < view.width; ++x, pixel += 3) {
      const int64_t along = downwards ? y : x;
      const uint64_t bits = rng.next();
      const std::array<uint32_t, 3> sources = {static_cast<uint32_t>(bits),
                                               static_cast<uint32_t>(bits >> 32),
                                               static_cast<uint32_t>(mix64(bits))};
      for (size_t c = 0; c < 3; ++c) {
        pixel[c] = clamp_byte(base[c] + slope[c] * along / last + noise(sources[c], deviation));
      }
    }
  }
}

/// A rectangle or the ellipse in it, clipped to the view.
void paint_shape(RgbView view, Rng& rng) {
  const auto to_picture = [&](int tile_pixels, int64_t side) {
    return tile_pixels * side / kTrainingCell;
  };
  const int64_t left = to_picture(rng.range(0, kTrainingCell), view.width);
  const int64_t top = to_picture(rng.range(0, kTrainingCell), view.height);
  const int64_t width = std::max<int64_t>(1, to_picture(rng.range(5, 60), view.width));
  const int64_t height = std::max<int64_t>(1, to_picture(rng.range(5, 60), view.height));
  const Rgb color = {clamp_byte(rng.range(0, 256)), clamp_byte(rng.range(0, 256)),
                     clamp_byte(rng.range(0, 256))};
  const bool ellipse = rng.coin();
  for (int64_t y = top; y < std::min(view.height, top + height); ++y) {
    for (int64_t x = left; x < std::min(view.width, left + width); ++x) {
      const int64_t dx = (2 * (x - left) + 1 - width) * height;
      const int64_t dy = (2 * (y - top) + 1 - height) * width;
      if (ellipse && dx * dx + dy * dy > width * width * height * height) continue;
      uint8_t* pixel = view.row(y) + x * 3;
      pixel[0] = color.r;
      pixel[1] = color.g;
      pixel[2] = color.b;
    }
  }
}

}  // namespace

void paint_background(RgbView view, Rng rng) {
  paint_gradient(view, rng);
  const int n_shapes = rng.range(0, 5);
  for (int i = 0; i < n_shapes; ++i) paint_shape(view, rng);
  if (rng.coin()) gaussian_blur(view, kSigma[rng.below(kSigma.size())]);
}

void paint_cells(const CellGrid& grid, uint64_t seed, int row, RgbView band) {
  for (int col = 0; col < grid.n_cols(); ++col) {
    const int64_t left = grid.left(col);
    const auto index = static_cast<uint64_t>(int64_t{row} * grid.n_cols() + col);
    paint_background(band.part(left, 0, grid.left(col + 1) - left, band.height), Rng(seed, index));
  }
}

}  // namespace plateau::eval

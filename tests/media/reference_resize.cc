#include "media/reference_resize.h"

#include <algorithm>
#include <cmath>

namespace plateau::media::testing {
namespace {

// Keys' cubic convolution kernel with a = -1/2, written by its two cases.
double catmull_rom(double x) {
  const double d = std::fabs(x);
  if (d <= 1) return 1.5 * d * d * d - 2.5 * d * d + 1;
  if (d <= 2) return -0.5 * d * d * d + 2.5 * d * d - 4 * d + 2;
  return 0;
}

// All inputs of the axis are summed, near or far: the kernel is zero outside its support.
std::vector<double> weights_for(int out, int out_size, int in_size) {
  const double scale = static_cast<double>(in_size) / out_size;
  const double stretch = std::max(1.0, scale);
  std::vector<double> weights;
  double sum = 0;
  for (int in = 0; in < in_size; ++in) {
    const double distance = (in + 0.5) - (out + 0.5) * scale;
    weights.push_back(catmull_rom(distance / stretch));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

double to_level(double value) { return std::clamp(std::round(value), 0.0, 255.0); }

}  // namespace

Rgb8 reference_resize(const Rgb8& in, int width, int height) {
  const auto at = [](int y, int x, int c, int w) {
    return (static_cast<size_t>(y) * static_cast<size_t>(w) + static_cast<size_t>(x)) * 3 +
           static_cast<size_t>(c);
  };
  std::vector<double> wide(static_cast<size_t>(width) * static_cast<size_t>(in.height) * 3);
  for (int x = 0; x < width; ++x) {
    const std::vector<double> weights = weights_for(x, width, in.width);
    for (int y = 0; y < in.height; ++y) {
      for (int c = 0; c < 3; ++c) {
        double sum = 0;
        for (int i = 0; i < in.width; ++i) {
          sum += weights[static_cast<size_t>(i)] * in.pixels[at(y, i, c, in.width)];
        }
        wide[at(y, x, c, width)] = to_level(sum);
      }
    }
  }
  Rgb8 out{width, height, {}};
  out.pixels.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
  for (int y = 0; y < height; ++y) {
    const std::vector<double> weights = weights_for(y, height, in.height);
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        double sum = 0;
        for (int i = 0; i < in.height; ++i) {
          sum += weights[static_cast<size_t>(i)] * wide[at(i, x, c, width)];
        }
        out.pixels[at(y, x, c, width)] = static_cast<uint8_t>(to_level(sum));
      }
    }
  }
  return out;
}

}  // namespace plateau::media::testing

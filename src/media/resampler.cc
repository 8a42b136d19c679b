// Follows Pillow's src/libImaging/Resample.c (8 bits per channel): same support, same weights, same
// fixed point, horizontal pass first with its result rounded to 8 bits.
// Tested by resampler_test.cc.
#include "media/resampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace plateau::media {
namespace {

constexpr int kPrecisionBits = 32 - 8 - 2;
constexpr int32_t kHalf = 1 << (kPrecisionBits - 1);
constexpr double kSupport = 2.0;
constexpr double kA = -0.5;  // Catmull-Rom
constexpr size_t kPixel = 3;

double bicubic(double x) {
  x = std::abs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0.0;
}

uint8_t to_byte(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kPrecisionBits, 0, 255));
}

int32_t to_fixed(double weight) {
  return static_cast<int32_t>(weight * (1 << kPrecisionBits) + (weight < 0 ? -0.5 : 0.5));
}

void resize_row(const AxisWeights& axis, const uint8_t* in, uint8_t* out) {
  for (int x = 0; x < axis.out_size(); ++x) {
    const uint8_t* pixel = in + static_cast<size_t>(axis.first(x)) * kPixel;
    const int32_t* weights = axis.weights(x);
    int32_t r = kHalf;
    int32_t g = kHalf;
    int32_t b = kHalf;
    const int n = axis.n(x);
    for (int i = 0; i < n; ++i, pixel += kPixel) {
      r += pixel[0] * weights[i];
      g += pixel[1] * weights[i];
      b += pixel[2] * weights[i];
    }
    *out++ = to_byte(r);
    *out++ = to_byte(g);
    *out++ = to_byte(b);
  }
}

}  // namespace

AxisWeights::AxisWeights(int in_size, int out_size)
    : in_size_(in_size), out_size_(out_size), max_taps_(1) {
  PLATEAU_CHECK(in_size > 0 && out_size > 0);
  if (identity()) return;
  const double scale = static_cast<double>(in_size) / out_size;
  const double filter_scale = std::max(scale, 1.0);  // antialiasing: the kernel widens with shrink
  const double support = kSupport * filter_scale;
  max_taps_ = std::min(static_cast<int>(std::ceil(support)) * 2 + 1, in_size);
  const auto n_out = static_cast<size_t>(out_size);
  first_.resize(n_out);
  n_.resize(n_out);
  weights_.resize(n_out * static_cast<size_t>(max_taps_));
  std::vector<double> taps(static_cast<size_t>(max_taps_));
  for (size_t out = 0; out < n_out; ++out) {
    const double center = (static_cast<double>(out) + 0.5) * scale;
    const int first = std::max(static_cast<int>(center - support + 0.5), 0);
    const int n = std::min(static_cast<int>(center + support + 0.5), in_size) - first;
    double sum = 0.0;
    for (int i = 0; i < n; ++i) {
      taps[static_cast<size_t>(i)] = bicubic((i + first - center + 0.5) * (1.0 / filter_scale));
      sum += taps[static_cast<size_t>(i)];
    }
    for (int i = 0; i < n; ++i) {
      const double weight = taps[static_cast<size_t>(i)];
      weights_[out * static_cast<size_t>(max_taps_) + static_cast<size_t>(i)] =
          to_fixed(sum != 0.0 ? weight / sum : weight);
    }
    first_[out] = first;
    n_[out] = n;
  }
}

Resampler::Resampler(int in_width, int in_height, int out_width, int out_height)
    : horizontal_(in_width, out_width),
      vertical_(in_height, out_height),
      out_row_bytes_(static_cast<size_t>(out_width) * kPixel),
      n_slots_(vertical_.max_taps()),
      rows_(static_cast<size_t>(n_slots_) * out_row_bytes_),
      sums_(vertical_.identity() ? 0 : out_row_bytes_) {}

uint8_t* Resampler::slot(int in_y) {
  return rows_.data() + static_cast<size_t>(in_y % n_slots_) * out_row_bytes_;
}

bool Resampler::ready() const {
  if (done()) return false;
  if (vertical_.identity()) return in_y_ > out_y_;
  return in_y_ >= vertical_.first(out_y_) + vertical_.n(out_y_);
}

void Resampler::push(const uint8_t* row) {
  PLATEAU_CHECK(!ready());
  if (horizontal_.identity()) {
    std::memcpy(slot(in_y_), row, out_row_bytes_);
  } else {
    resize_row(horizontal_, row, slot(in_y_));
  }
  ++in_y_;
}

void Resampler::pop(uint8_t* out) {
  PLATEAU_CHECK(ready());
  if (vertical_.identity()) {
    std::memcpy(out, slot(out_y_), out_row_bytes_);
    ++out_y_;
    return;
  }
  std::fill(sums_.begin(), sums_.end(), kHalf);
  const int32_t* weights = vertical_.weights(out_y_);
  for (int i = 0; i < vertical_.n(out_y_); ++i) {
    const uint8_t* row = slot(vertical_.first(out_y_) + i);
    const int32_t weight = weights[i];
    int32_t* sums = sums_.data();
    for (size_t k = 0; k < out_row_bytes_; ++k) sums[k] += row[k] * weight;
  }
  std::transform(sums_.begin(), sums_.end(), out, to_byte);
  ++out_y_;
}

}  // namespace plateau::media

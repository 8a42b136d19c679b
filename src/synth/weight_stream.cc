#include "synth/weight_stream.h"

#include <algorithm>
#include <cstddef>

#include "base/fnv1a.h"

namespace plateau::synth {
namespace {

// Sebastiano Vigna's splitmix64: one multiply-xorshift chain per 64 bits, which is four weights.
uint64_t next(uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

}  // namespace

WeightStream::WeightStream(std::string_view tensor_name, uint64_t seed)
    : state_(fnv1a(tensor_name) ^ next(seed)) {}

void WeightStream::fill(std::span<float> out, float mean, float deviation) {
  constexpr float kSqrt3 = 1.7320508F;  // a uniform value on [-1, 1) has deviation 1 / sqrt(3)
  const float step = deviation * kSqrt3 / 32768.0F;
  for (size_t i = 0; i < out.size(); i += 4) {
    uint64_t bits = next(state_);
    const size_t n = std::min<size_t>(4, out.size() - i);
    for (size_t j = 0; j < n; ++j, bits >>= 16) {
      const int level = static_cast<int>(bits & 0xffff) - 32768;
      out[i + j] = mean + step * static_cast<float>(level);
    }
  }
}

}  // namespace plateau::synth

// Numbers drawn the same way on every platform: no std distribution, whose output differs between
// standard libraries.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace plateau::test {

using Rng = std::mt19937_64;

/// An integer in [low, high].
inline int draw(Rng& rng, int low, int high) {
  return low + static_cast<int>(rng() % static_cast<uint64_t>(high - low + 1));
}

/// A number in [0, 1).
inline double draw_unit(Rng& rng) { return static_cast<double>(rng() >> 11) * 0x1p-53; }

/// n numbers, roughly normal: mean 0, deviation 1.
inline std::vector<float> draw_normal(Rng& rng, size_t n) {
  std::vector<float> values(n);
  for (float& value : values) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += draw_unit(rng);
    value = static_cast<float>(sum);
  }
  return values;
}

}  // namespace plateau::test

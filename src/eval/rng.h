// A small seedable generator with the same output on every platform, which the distributions of
// <random> do not promise. splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, 2014).
#pragma once

#include <cstdint>

namespace plateau::eval {

/// One step of splitmix64: spreads `value` over all 64 bits.
constexpr uint64_t mix64(uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(mix64(seed)) {}

  /// An independent stream for (seed, key), so that a part can be drawn again without the others.
  Rng(uint64_t seed, uint64_t key) : state_(mix64(mix64(seed) ^ mix64(~key))) {}

  uint64_t next() {
    const uint64_t result = mix64(state_);
    state_ += 0x9e3779b97f4a7c15U;
    return result;
  }

  /// Uniform in [0, limit). REQUIRES: limit > 0. The bias of the remainder is below limit / 2^64.
  uint64_t below(uint64_t limit) { return next() % limit; }

  /// Uniform in [low, high). REQUIRES: low < high.
  int range(int low, int high) {
    return low + static_cast<int>(below(static_cast<uint64_t>(int64_t{high} - low)));
  }

  bool coin() { return (next() >> 63) != 0; }

 private:
  uint64_t state_;
};

}  // namespace plateau::eval

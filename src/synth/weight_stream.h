// Random weights that are the same on every platform: no std distribution, whose output differs
// between standard libraries, and a seed that depends on the tensor's name only, so that adding a
// tensor does not change the others.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace plateau::synth {

class WeightStream {
 public:
  WeightStream(std::string_view tensor_name, uint64_t seed);

  /// Uniform values of the given mean and standard deviation, on a grid of 2^16 levels. Filling a
  /// tensor piece by piece gives the values of one call when every piece but the last is a multiple
  /// of four long.
  void fill(std::span<float> out, float mean, float deviation);

 private:
  uint64_t state_;
};

}  // namespace plateau::synth

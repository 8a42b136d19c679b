// A fixed random number per (seed, layer, kv head, token): the baseline below which no policy may
// fall. Seeing a token again gives the same number, so the result does not depend on the block
// size.
#include "kv/policies/policies.h"

namespace plateau::kv {
namespace {

/// SplitMix64's finaliser.
uint64_t mix_bits(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

class Random final : public Policy {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}

  void score(const LayerSlots& layer, std::span<const std::vector<float>> /*signals*/,
             std::span<float> scores) const override {
    size_t i = 0;
    for (size_t head = 0; head < layer.tokens.size(); ++head) {
      const uint64_t stream =
          mix_bits(seed_ ^ mix_bits((static_cast<uint64_t>(layer.il) << 32) | head));
      for (const int32_t token : layer.tokens[head]) {
        const uint64_t bits = mix_bits(stream ^ static_cast<uint64_t>(token));
        scores[i++] = static_cast<float>(bits >> 40);  // 24 bits: exact in a float
      }
    }
  }

 private:
  uint64_t seed_;
};

}  // namespace

std::unique_ptr<Policy> make_random(const PolicyOptions& options) {
  return std::make_unique<Random>(options.seed);
}

}  // namespace plateau::kv

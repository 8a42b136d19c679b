// KeyDiff (arXiv:2504.15364): keep the keys least like the mean, which needs no query.
//
//   a = mean_j k_j / ||k_j||,   s_i = -cos(k_i, a)
//
// over the rotated keys of one (layer, kv head). It ranks as the pairwise row sums of cosines do.
#include "kv/policies/policies.h"
#include "kv/policies/signals.h"

namespace plateau::kv {
namespace {

class KeyDiff final : public Policy {
 public:
  std::vector<ggml_tensor*> build_signals(const SignalInputs& inputs) const override {
    return {key_difference(inputs)};
  }

  void score(const LayerSlots& /*layer*/, std::span<const std::vector<float>> signals,
             std::span<float> scores) const override {
    std::copy(signals[0].begin(), signals[0].end(), scores.begin());
  }
};

}  // namespace

std::unique_ptr<Policy> make_keydiff(const PolicyOptions& /*options*/) {
  return std::make_unique<KeyDiff>();
}

}  // namespace plateau::kv

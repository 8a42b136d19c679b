// Keep the longest values: a baseline that looks at one token at a time, so that its result does
// not depend on the block size.
#include "kv/policies/policies.h"
#include "kv/policies/signals.h"

namespace plateau::kv {
namespace {

class ValueNorm final : public Policy {
 public:
  std::vector<ggml_tensor*> build_signals(const SignalInputs& inputs) const override {
    return {value_norm(inputs)};
  }

  void score(const LayerSlots& /*layer*/, std::span<const std::vector<float>> signals,
             std::span<float> scores) const override {
    std::copy(signals[0].begin(), signals[0].end(), scores.begin());
  }
};

}  // namespace

std::unique_ptr<Policy> make_value_norm(const PolicyOptions& /*options*/) {
  return std::make_unique<ValueNorm>();
}

}  // namespace plateau::kv

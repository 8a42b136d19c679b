// StreamingLLM (arXiv:2309.17453): the first tokens and the latest. The first are always kept, so
// the score is age alone. Blind to content: a baseline.
#include "kv/policies/policies.h"

namespace plateau::kv {
namespace {

class SinkRecent final : public Policy {
 public:
  void score(const LayerSlots& layer, std::span<const std::vector<float>> /*signals*/,
             std::span<float> scores) const override {
    size_t i = 0;
    for (const auto& tokens : layer.tokens) {
      for (const int32_t token : tokens) scores[i++] = static_cast<float>(token);
    }
  }
};

}  // namespace

std::unique_ptr<Policy> make_sink_recent(const PolicyOptions& /*options*/) {
  return std::make_unique<SinkRecent>();
}

}  // namespace plateau::kv

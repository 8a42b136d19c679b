// SnapKV (arXiv:2404.14469), as arXiv:2604.16734 uses it while prefilling:
//
//   s_i = pool( mean over the group's heads and over the W observing queries of
//               softmax_j(q . k_j / sqrt(d))_i )
//
// The observing queries are proxies: the prompt's last W tokens, run with every block.
// Deviations: the softmax is in f32 and spans the whole cache; the proxies stand at their true
// final positions unless told otherwise; average pool with kernel 5 (the original: max, 7).
#include "kv/policies/policies.h"
#include "kv/policies/signals.h"
#include "kv/pooling.h"

namespace plateau::kv {
namespace {

class SnapKv : public Policy {
 public:
  explicit SnapKv(const PolicyOptions& options) : options_(options) {}

  bool observes() const override { return true; }
  bool needs_question() const override { return true; }

  std::vector<ggml_tensor*> build_signals(const SignalInputs& inputs) const override {
    return {observed_attention(inputs)};
  }

  void score(const LayerSlots& layer, std::span<const std::vector<float>> signals,
             std::span<float> scores) const override {
    attention_scores(signals[0], layer, options_, scores);
  }

 private:
  PolicyOptions options_;
};

/// What everyone else does: the full cache first, one compression before decoding.
class PostPrefillSnapKv final : public SnapKv {
 public:
  using SnapKv::SnapKv;
  bool evicts_only_at_end() const override { return true; }
};

/// The same score where the question is not known: the block's own last W queries observe.
class BlockAttention final : public SnapKv {
 public:
  using SnapKv::SnapKv;
  bool needs_question() const override { return false; }
};

}  // namespace

std::unique_ptr<Policy> make_snapkv(const PolicyOptions& options) {
  return std::make_unique<SnapKv>(options);
}

std::unique_ptr<Policy> make_post_prefill_snapkv(const PolicyOptions& options) {
  return std::make_unique<PostPrefillSnapKv>(options);
}

std::unique_ptr<Policy> make_block_attention(const PolicyOptions& options) {
  return std::make_unique<BlockAttention>(options);
}

}  // namespace plateau::kv

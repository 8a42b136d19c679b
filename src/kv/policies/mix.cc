// Attention and diversity, mixed by how redundant a head's keys are (after MixKV):
//
//   r   = (n ||mean_j kh_j||^2 - 1) / (n - 1), kh unit keys: 1 when all keys point the same way
//   s_i = (1 - r) (attention_i + value norm_i) + r diversity_i
//
// attention: SnapKV's; value norm: ||v_i||; diversity: KeyDiff's. Value norm and diversity are
// brought to [0, 1] by min and max over the head's slots, then to the attention's mean.
#include <algorithm>
#include <numeric>

#include "kv/policies/policies.h"
#include "kv/policies/signals.h"
#include "kv/pooling.h"

namespace plateau::kv {
namespace {

/// Squared length of the mean unit key: [1, n_head_kv].
ggml_tensor* mean_key_squared(const SignalInputs& inputs) {
  ggml_context* ctx = inputs.context;
  ggml_tensor* keys = unit_keys(inputs);
  ggml_tensor* by_dim = ggml_cont(ctx, ggml_permute(ctx, keys, 1, 0, 2, 3));
  ggml_tensor* mean = ggml_reshape_2d(ctx, ggml_mean(ctx, by_dim), keys->ne[0], keys->ne[2]);
  return ggml_sum_rows(ctx, ggml_sqr(ctx, mean));
}

/// To [0, 1], then scaled so that its mean is `mean`; constant input becomes `mean` everywhere.
std::vector<float> to_scale_of(std::span<const float> values, double mean) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double range = static_cast<double>(*high) - *low;
  std::vector<float> result(values.size(), static_cast<float>(mean));
  if (range <= 0) return result;
  const double own_mean =
      (std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()) -
       *low) /
      range;
  const double factor = mean / (range * own_mean);
  for (size_t i = 0; i < values.size(); ++i) {
    result[i] = static_cast<float>((static_cast<double>(values[i]) - *low) * factor);
  }
  return result;
}

class Mix final : public Policy {
 public:
  explicit Mix(const PolicyOptions& options) : options_(options) {}

  bool observes() const override { return true; }
  bool needs_question() const override { return true; }

  std::vector<ggml_tensor*> build_signals(const SignalInputs& inputs) const override {
    return {observed_attention(inputs), value_norm(inputs), key_difference(inputs),
            mean_key_squared(inputs)};
  }

  void score(const LayerSlots& layer, std::span<const std::vector<float>> signals,
             std::span<float> scores) const override {
    attention_scores(signals[0], layer, options_, scores);
    const auto n = static_cast<size_t>(layer.n_held);
    for (size_t head = 0; head < static_cast<size_t>(layer.n_head_kv); ++head) {
      const auto attention = scores.subspan(head * n, n);
      const auto of_head = [&](size_t signal) {
        return std::span(signals[signal]).subspan(head * n, n);
      };
      const double mean =
          std::accumulate(attention.begin(), attention.end(), 0.0) / static_cast<double>(n);
      const std::vector<float> norm = to_scale_of(of_head(1), mean);
      const std::vector<float> diversity = to_scale_of(of_head(2), mean);
      const double redundancy = n < 2
                                    ? 0.0
                                    : std::clamp((static_cast<double>(n) * signals[3][head] - 1.0) /
                                                     static_cast<double>(n - 1),
                                                 0.0, 1.0);
      for (size_t i = 0; i < n; ++i) {
        attention[i] = static_cast<float>((1.0 - redundancy) * (attention[i] + norm[i]) +
                                          redundancy * diversity[i]);
      }
    }
  }

 private:
  PolicyOptions options_;
};

}  // namespace

std::unique_ptr<Policy> make_mix(const PolicyOptions& options) {
  return std::make_unique<Mix>(options);
}

}  // namespace plateau::kv

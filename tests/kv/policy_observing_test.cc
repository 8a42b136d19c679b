// Which rows observe for a policy, and from where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "kv/policy_worlds.h"
#include "kv/sequence_harness.h"

namespace plateau::test {
namespace {

/// Counts the rows that observe.
class CountingPolicy final : public kv::Policy {
 public:
  explicit CountingPolicy(bool needs_question) : needs_question_(needs_question) {}
  bool observes() const override { return true; }
  bool needs_question() const override { return needs_question_; }
  std::vector<ggml_tensor*> build_signals(const kv::SignalInputs& inputs) const override {
    n_observed.insert(static_cast<int>(inputs.q->ne[1]));
    return {};
  }
  void score(const kv::LayerSlots& /*layer*/, std::span<const std::vector<float>> /*signals*/,
             std::span<float> scores) const override {
    std::fill(scores.begin(), scores.end(), 0.0F);
  }

  mutable std::set<int> n_observed;

 private:
  bool needs_question_;
};

// With a window larger than the question, no row of the picture observes in the question's place.
TEST(Observing, IsWhatStandsForTheQuestion) {
  TinyWorld world(kQwen3);
  for (const int n_block : {3, 12, 30, kAll}) {
    SCOPED_TRACE(n_block);
    CountingPolicy policy(/*needs_question=*/true);
    RunOptions run_options = {.budget = 40, .n_block = n_block, .policy_options = {.window = 32}};
    PromptRun run(world, &policy, run_options);
    run.finish();
    EXPECT_EQ(run.sequence().n_proxy(), 10);  // the closing marker and nine tokens of text
    EXPECT_THAT(policy.n_observed, testing::ElementsAre(10));
    run_options.policy_options.window = 4;
    CountingPolicy narrow(/*needs_question=*/true);
    PromptRun(world, &narrow, run_options).finish();
    EXPECT_THAT(narrow.n_observed, testing::ElementsAre(4));
  }
  // Without a question, the block's own last rows do.
  CountingPolicy policy(/*needs_question=*/false);
  PromptRun(world, &policy, {.budget = 40, .n_block = 12, .policy_options = {.window = 5}})
      .finish();
  EXPECT_THAT(policy.n_observed, testing::ElementsAre(5));
}

class ObservingPosition : public testing::TestWithParam<const TinyTextModel*> {};
INSTANTIATE_TEST_SUITE_P(Models, ObservingPosition, testing::Values(&kQwen3, &kQwen2VL),
                         [](const auto& model) { return model.param->arch; });

// Right behind the block is where the question truly stands only when the block is the last before
// it.
TEST_P(ObservingPosition, FromTheTruePositionOrFromBehindTheBlock) {
  TinyWorld world(*GetParam());
  const auto scores_of = [&](ProxyPosition position, int n_rows) {
    const auto policy = kv::make_policy("snapkv", {});
    RecordingPolicy recording(*policy);
    RunOptions options = {.budget = 88, .n_block = kAll, .policy_options = {.window = 32}};
    options.policy_options.proxy_position = position;
    PromptRun run(world, &recording, options);
    run.sequence().append(world.slice(0, n_rows), 40, /*want_logits=*/false,
                          /*rows_are_proxies=*/false);
    return recording.records.at(0).scores;
  };
  const int n_before_question = world.n_prompt() - 10;
  EXPECT_EQ(scores_of(ProxyPosition::kTrue, n_before_question),
            scores_of(ProxyPosition::kAfterBlock, n_before_question));
  EXPECT_NE(scores_of(ProxyPosition::kTrue, 60), scores_of(ProxyPosition::kAfterBlock, 60));
}

}  // namespace
}  // namespace plateau::test

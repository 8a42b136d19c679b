// Scores without context: what stays is the global best, however the prompt was cut.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kv/policy_worlds.h"
#include "kv/sequence_harness.h"
#include "support/compare.h"

namespace plateau::test {
namespace {

/// Per (layer, head): everything protected, and of the rest the best by `score`.
template <typename Score>
std::vector<std::vector<int32_t>> global_best(const PromptRun& run, int n_keep, Score score) {
  std::vector<std::vector<int32_t>> result;
  for (int il = 0; il < run.slots().n_layer(); ++il) {
    for (int head = 0; head < run.slots().n_head_kv(); ++head) {
      std::vector<float> scores;
      std::vector<uint8_t> is_protected;
      for (int token = 0; token < run.n_done(); ++token) {
        scores.push_back(score(il, head, token));
        is_protected.push_back(run.tokens().at(token).is_protected ? 1 : 0);
      }
      result.push_back(kept_by_sorting(scores, is_protected, n_keep));
    }
  }
  return result;
}

class ContextFree : public testing::TestWithParam<World> {
 protected:
  template <typename Check>
  void for_every_cut(kv::Policy& policy, Check check) {
    for (const int n_block : kBlockSizes) {
      for (const int n_bulk : {0, 50}) {
        for (const int budget : {20, 33, 60, 88}) {
          SCOPED_TRACE(testing::Message()
                       << "block " << n_block << " bulk " << n_bulk << " budget " << budget);
          PromptRun run(world_, &policy,
                        {.budget = budget,
                         .n_block = n_block,
                         .n_bulk = n_bulk,
                         .cache_type = GetParam().cache_type});
          run.finish();
          check(run, budget);
        }
      }
    }
  }
  TinyWorld world_ = TinyWorld(*GetParam().tiny);
};

INSTANTIATE_TEST_SUITE_P(Worlds, ContextFree, testing::Values(kWorlds[0], kWorlds[2], kWorlds[4]),
                         [](const auto& world) { return std::string(world.param.name); });

TEST_P(ContextFree, AGivenScoreKeepsTheGlobalBest) {
  GivenScorePolicy policy;
  for_every_cut(policy, [](const PromptRun& run, int budget) {
    ASSERT_EQ(run.kept(), global_best(run, budget, GivenScorePolicy::score_of));
  });
}

TEST_P(ContextFree, TheLatestAreTheGlobalBestOfSinkRecent) {
  const auto policy = kv::make_policy("sink-recent", {});
  for_every_cut(*policy, [](const PromptRun& run, int budget) {
    ASSERT_EQ(run.kept(), global_best(run, budget, [](int /*il*/, int /*head*/, int token) {
                return static_cast<float>(token);
              }));
  });
}

TEST_P(ContextFree, RandomKeepsTheSameAtEveryBlockSize) {
  const auto policy = kv::make_policy("random", {.seed = 5});
  std::map<int, std::vector<std::vector<int32_t>>> first;
  for_every_cut(*policy, [&](const PromptRun& run, int budget) {
    ASSERT_EQ(run.kept(), first.emplace(budget, run.kept()).first->second);
  });
  // Another seed keeps others; heads do not agree.
  const auto other = kv::make_policy("random", {.seed = 6});
  PromptRun run(world_, other.get(), {.budget = 60, .cache_type = GetParam().cache_type});
  run.finish();
  EXPECT_NE(run.kept(), first.at(60));
  EXPECT_NE(run.kept().front(), run.kept().back());
}

// Values depend on what was attended to, but not those of the first layer.
TEST_P(ContextFree, ValueNormKeepsTheLongestValuesOfTheFirstLayer) {
  PromptRun exact(world_, nullptr, {.cache_type = GetParam().cache_type});
  exact.finish();
  const auto norm = [&](int head, int token) {
    const std::vector<float> rows = exact.stored_v(0, head);
    double sum = 0;
    for (size_t i = 0; i < 32; ++i) {
      const double x = rows[static_cast<size_t>(token) * 32 + i];
      sum += x * x;
    }
    return static_cast<float>(std::sqrt(sum));
  };
  const auto policy = kv::make_policy("value-norm", {});
  for_every_cut(*policy, [&](const PromptRun& run, int budget) {
    const auto want = global_best(run, budget, [&](int il, int head, int token) {
      return il == 0 ? norm(head, token) : 0.0F;
    });
    for (int head = 0; head < run.slots().n_head_kv(); ++head) {
      ASSERT_EQ(run.kept()[static_cast<size_t>(head)], want[static_cast<size_t>(head)]);
    }
  });
}

}  // namespace
}  // namespace plateau::test

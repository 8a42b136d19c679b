#include "kv/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "kv/draw.h"
#include "plateau/error.h"

namespace plateau::kv {

static bool operator==(const BlockStep& a, const BlockStep& b) {
  return a.n_rows == b.n_rows && a.n_before == b.n_before && a.n_after == b.n_after;
}
static void PrintTo(const BlockStep& step, std::ostream* out) {
  *out << step.n_rows << " rows: " << step.n_before << " -> " << step.n_after;
}

namespace {

using test::draw;
using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const BudgetRequest& request) {
  try {
    plan_budget(request);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(Budget, AppendModeHoldsTheBudgetAndOneBlock) {
  const std::vector<int> blocks = {64, 64, 64, 64, 10};
  const BudgetPlan plan = plan_budget({.block_rows = blocks, .budget = 100, .n_decode = 5});
  EXPECT_THAT(plan.steps,
              ElementsAre(BlockStep{64, 0, 64}, BlockStep{64, 64, 100}, BlockStep{64, 100, 100},
                          BlockStep{64, 100, 100}, BlockStep{10, 100, 100}));
  EXPECT_EQ(plan.n_arena, 100 + 64);
  EXPECT_FALSE(plan.steps[0].evicts());
  EXPECT_TRUE(plan.steps[1].evicts());
  // Decoding uses the block's room and then goes back to the budget.
  EXPECT_EQ(plan.n_decode_limit, 164);
  EXPECT_EQ(plan.n_decode_keep, 100);
}

TEST(Budget, StrictModeHoldsTheBudgetAndNoMore) {
  const std::vector<int> blocks = {64, 30, 64, 10};
  const BudgetPlan plan = plan_budget(
      {.block_rows = blocks, .budget = 100, .strict = true, .n_decode = 5, .n_protected = 12});
  EXPECT_THAT(plan.steps, ElementsAre(BlockStep{64, 0, 64}, BlockStep{30, 64, 36},
                                      BlockStep{64, 36, 90}, BlockStep{10, 90, 99}));
  EXPECT_EQ(plan.n_arena, 100);
  EXPECT_EQ(plan.n_decode_limit, 100);
  EXPECT_LT(plan.n_decode_keep, 100);
  EXPECT_GE(plan.n_decode_keep, 12);
}

TEST(Budget, ProxiesRunWithEvictingBlocks) {
  const std::vector<int> blocks = {64, 64, 64};
  EXPECT_EQ(plan_budget({.block_rows = blocks, .budget = 100, .n_proxy = 32}).n_arena,
            100 + 64 + 32);
  EXPECT_EQ(
      plan_budget({.block_rows = blocks, .budget = 100, .strict = true, .n_proxy = 32}).n_arena,
      100 + 32);
  // No eviction, no proxies.
  EXPECT_EQ(plan_budget({.block_rows = blocks, .budget = 200, .n_proxy = 32}).n_arena, 192);
}

TEST(Budget, WhatFitsIsKept) {
  const std::vector<int> blocks = {64, 64};
  for (const int budget : {0, 133, 134, 1000}) {
    for (const bool strict : {false, true}) {
      const BudgetPlan plan =
          plan_budget({.block_rows = blocks, .budget = budget, .strict = strict, .n_decode = 5});
      EXPECT_THAT(plan.steps, ElementsAre(BlockStep{64, 0, 64}, BlockStep{64, 64, 128}));
      EXPECT_EQ(plan.n_arena, 133);
      EXPECT_GT(plan.n_decode_limit, 133);  // never reached
    }
  }
}

TEST(Budget, TheBulkStageIsALargeFirstBlock) {
  const std::vector<int> blocks = {1000, 64, 64};
  const BudgetPlan plan = plan_budget({.block_rows = blocks, .budget = 1000});
  EXPECT_THAT(plan.steps, ElementsAre(BlockStep{1000, 0, 1000}, BlockStep{64, 1000, 1000},
                                      BlockStep{64, 1000, 1000}));
  // What the first block needs is not reserved for the later ones.
  EXPECT_EQ(plan.n_arena, 1064);
}

TEST(Budget, AtTheEndOnlyHoldsThePromptFirst) {
  const std::vector<int> blocks = {64, 64, 64};
  const BudgetPlan plan =
      plan_budget({.block_rows = blocks, .budget = 100, .evict_only_at_end = true, .n_proxy = 8});
  EXPECT_THAT(plan.steps,
              ElementsAre(BlockStep{64, 0, 64}, BlockStep{64, 64, 128}, BlockStep{64, 128, 100}));
  EXPECT_EQ(plan.n_arena, 192 + 8);
}

// A policy that needs the whole prompt does so in strict mode, too; only decoding is strict then.
TEST(Budget, AtTheEndOnlyInStrictModeEvictsOnce) {
  const std::vector<int> blocks = {64, 64, 64};
  const BudgetPlan plan = plan_budget({.block_rows = blocks,
                                       .budget = 30,
                                       .strict = true,
                                       .evict_only_at_end = true,
                                       .n_protected = 10});
  EXPECT_THAT(plan.steps,
              ElementsAre(BlockStep{64, 0, 64}, BlockStep{64, 64, 128}, BlockStep{64, 128, 29}));
  EXPECT_EQ(plan.n_arena, 192);
  EXPECT_EQ(plan.n_decode_limit, 30);
}

TEST(Budget, TooSmallSaysHowMuchIsNeeded) {
  const std::vector<int> blocks = {64, 64, 64};
  const std::string text = error_of({.block_rows = blocks, .budget = 39, .n_protected = 40});
  EXPECT_THAT(text, HasSubstr("--kv-budget"));
  EXPECT_THAT(text, HasSubstr("at least 40 tokens"));
  EXPECT_THAT(text, HasSubstr("got 39"));
  EXPECT_EQ(error_of({.block_rows = blocks, .budget = 40, .n_protected = 40}), "");

  const std::string strict =
      error_of({.block_rows = blocks, .budget = 103, .strict = true, .n_protected = 40});
  EXPECT_THAT(strict, HasSubstr("at least 104 tokens"));
  EXPECT_THAT(strict, HasSubstr("--block"));
  // The whole need at once, however small the budget is.
  EXPECT_THAT(error_of({.block_rows = blocks, .budget = 1, .strict = true, .n_protected = 40}),
              HasSubstr("at least 104 tokens"));
  EXPECT_EQ(error_of({.block_rows = blocks, .budget = 104, .strict = true, .n_protected = 40}), "");
}

// The first block cannot evict anything before it: in a strict arena it must fit.
TEST(Budget, AFirstBlockLargerThanAStrictBudgetIsRefused) {
  const std::vector<int> blocks = {64};
  EXPECT_THAT(error_of({.block_rows = blocks, .budget = 50, .strict = true}),
              HasSubstr("at least 64 tokens"));
  EXPECT_EQ(error_of({.block_rows = blocks, .budget = 64, .strict = true}), "");
  // In append mode it has its block's room.
  EXPECT_EQ(plan_budget({.block_rows = blocks, .budget = 50}).n_arena, 64);
}

TEST(Budget, NoBlocksAndEmptyBlocksAreBugs) {
  const std::vector<int> none, empty = {4, 0};
  EXPECT_THROW(plan_budget({.block_rows = none, .budget = 1}), Error);
  EXPECT_THROW(plan_budget({.block_rows = empty, .budget = 1}), Error);
  const std::vector<int> one = {4};
  EXPECT_THROW(plan_budget({.block_rows = one, .budget = -1}), Error);
}

TEST(Budget, InvariantsOfRandomRequests) {
  test::Rng rng(2);
  int n_planned = 0, n_refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<int> blocks;
    for (int n = draw(rng, 1, 12); n > 0; --n) blocks.push_back(draw(rng, 1, 40));
    const int n_prompt = std::accumulate(blocks.begin(), blocks.end(), 0);
    const int n_block = *std::max_element(blocks.begin(), blocks.end());
    const BudgetRequest request = {.block_rows = blocks,
                                   .budget = draw(rng, 1, 300),
                                   .strict = draw(rng, 0, 1) == 1,
                                   .evict_only_at_end = draw(rng, 0, 3) == 0,
                                   .n_proxy = draw(rng, 0, 1) * draw(rng, 1, 16),
                                   .n_decode = draw(rng, 0, 100),
                                   .n_protected = draw(rng, 0, n_prompt)};
    const int budget = request.budget;
    BudgetPlan plan;
    try {
      plan = plan_budget(request);
    } catch (const Error& error) {
      ++n_refused;
      ASSERT_EQ(error.code(), ErrorCode::kInvalidArgument);
      // Never without need.
      ASSERT_LT(budget, request.n_protected + (request.strict ? n_block : 0));
      continue;
    }
    ++n_planned;
    const bool fits = n_prompt + request.n_decode <= budget;
    ASSERT_EQ(plan.steps.size(), blocks.size());
    int n_held = 0;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const BlockStep& step = plan.steps[i];
      const bool is_last = i + 1 == blocks.size();
      ASSERT_EQ(step.n_rows, blocks[i]);
      ASSERT_EQ(step.n_before, n_held);
      ASSERT_LE(step.n_after, step.n_before + step.n_rows);
      ASSERT_GE(step.n_after, std::min(step.n_before + step.n_rows, request.n_protected));
      if (!request.evict_only_at_end || is_last) {
        ASSERT_LE(step.n_after, budget);
      }
      if (request.evict_only_at_end && !is_last) {
        ASSERT_FALSE(step.evicts());
      }
      if (fits) {
        ASSERT_FALSE(step.evicts());
      }
      if (!request.strict && step.evicts()) {  // no more than needed
        ASSERT_EQ(step.n_after, budget);
      }
      const int n_past = step.n_before + step.n_rows + (step.evicts() ? request.n_proxy : 0);
      ASSERT_LE(n_past, plan.n_arena);
      n_held = step.n_after;
    }
    if (!request.evict_only_at_end) {
      const int room = request.strict ? 0 : n_block;
      ASSERT_LE(plan.n_arena, budget + room + request.n_proxy);
    }
    // Decoding: token by token, until all are made.
    int n_evictions = 0;
    for (int i = 0; i < request.n_decode; ++i) {
      ++n_held;
      if (n_held >= plan.n_decode_limit) {
        ASSERT_LE(n_held + request.n_proxy, plan.n_arena);
        ASSERT_GE(plan.n_decode_keep, request.n_protected);
        ASSERT_LE(plan.n_decode_keep, budget);
        n_held = plan.n_decode_keep;
        ++n_evictions;
      }
      ASSERT_LE(n_held, plan.n_arena);
    }
    if (fits) {
      ASSERT_EQ(n_evictions, 0);
    }
  }
  EXPECT_GT(n_planned, 2000);
  EXPECT_GT(n_refused, 2000);
}

}  // namespace
}  // namespace plateau::kv

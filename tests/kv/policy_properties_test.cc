// What must hold whatever the policy: a new policy is tested by being in the registry.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "engine/prefill.h"
#include "kv/policy_worlds.h"
#include "kv/sequence_harness.h"
#include "plateau/error.h"
#include "support/compare.h"

namespace plateau::test {
namespace {

constexpr int kWindow = 8;

// Between block sizes the order of sums differs, and keys and values are rounded when stored
// (tests/graph/decoder_test.cc measures the same).
constexpr double kAcrossBlocksNmse = 1e-5;
// One row of keys that were computed in blocks of another size and then rounded to q8_0: the step
// is 1/127 of the largest of 32 numbers, so a flip of one step in some of them. Rows of two tokens
// differ by 1 and more.
constexpr double kSameRowNmse = 1e-3;

class PolicyProperties : public testing::TestWithParam<std::tuple<std::string, World>> {
 protected:
  PolicyProperties()
      : world_(*std::get<1>(GetParam()).tiny),
        policy_(kv::make_policy(std::get<0>(GetParam()), {.window = kWindow})) {}

  RunOptions options() const {
    return {.cache_type = std::get<1>(GetParam()).cache_type,
            .policy_options = {.window = kWindow}};
  }
  kv::Policy* policy() { return policy_.get(); }
  TinyWorld& world() { return world_; }

 private:
  TinyWorld world_;
  std::unique_ptr<kv::Policy> policy_;
};

std::string name_of(const testing::TestParamInfo<std::tuple<std::string, World>>& info) {
  std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::vector<std::string> all_policies() {
  std::vector<std::string> names;
  for (const kv::PolicyEntry& entry : kv::policies()) names.emplace_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Registry, PolicyProperties,
                         testing::Combine(testing::ValuesIn(all_policies()),
                                          testing::ValuesIn(kWorlds)),
                         name_of);

/// Protected tokens among the first n of the prompt.
std::vector<int32_t> protected_of(const PromptRun& run, int n) {
  std::vector<int32_t> tokens;
  for (int token = 0; token < n; ++token) {
    if (run.tokens().at(token).is_protected) tokens.push_back(token);
  }
  return tokens;
}

/// The eviction that was recorded last kept, for each layer and head, what sorting by its scores
/// says.
void expect_highest_scores_stayed(const RecordingPolicy& recording, const PromptRun& run,
                                  const kv::TokenTable& table, int n_keep) {
  ASSERT_EQ(static_cast<int>(recording.records.size()), run.slots().n_layer());
  for (const RecordingPolicy::Record& record : recording.records) {
    const auto n_held = static_cast<size_t>(record.n_held);
    for (size_t head = 0; head < record.tokens.size(); ++head) {
      std::vector<uint8_t> is_protected;
      for (const int32_t token : record.tokens[head]) {
        is_protected.push_back(table.at(token).is_protected ? 1 : 0);
      }
      std::vector<int32_t> want;
      for (const int32_t slot : kept_by_sorting(
               std::span(record.scores).subspan(head * n_held, n_held), is_protected, n_keep)) {
        want.push_back(record.tokens[head][static_cast<size_t>(slot)]);
      }
      const auto got = run.slots().tokens(record.il, static_cast<int>(head));
      ASSERT_EQ(std::vector<int32_t>(got.begin(), got.end()), want);
    }
  }
}

/// Layer 0's keys and values depend on nothing but their token, so they tell whether rows and slot
/// map moved together. `exact` holds all tokens of the prompt in order.
void expect_rows_belong_to_their_tokens(const PromptRun& run, const PromptRun& exact) {
  const auto head_dim = static_cast<size_t>(32);
  for (int head = 0; head < run.slots().n_head_kv(); ++head) {
    const auto tokens = run.slots().tokens(0, head);
    const auto check = [&](const std::vector<float>& got, const std::vector<float>& want) {
      for (size_t slot = 0; slot < tokens.size(); ++slot) {
        const auto row = std::span(got).subspan(slot * head_dim, head_dim);
        const auto token = static_cast<size_t>(tokens[slot]);
        ASSERT_LE(nmse(row, std::span(want).subspan(token * head_dim, head_dim)), kSameRowNmse)
            << "slot " << slot << " token " << token;
      }
    };
    check(run.stored_k(0, head), exact.stored_k(0, head));
    check(run.stored_v(0, head), exact.stored_v(0, head));
  }
}

/// Budgets from the smallest that is accepted to beyond the prompt.
std::vector<int> budgets(TinyWorld& world, kv::Policy* policy, RunOptions options) {
  options.budget = world.n_prompt();  // more than enough to be planned
  const PromptRun run(world, policy, options);
  int largest_block = 1;
  if (options.strict) {
    for (const auto& block : run.blocks())
      largest_block = std::max(largest_block, block.n_tokens());
  }
  const int n_prompt = world.n_prompt();
  const int least = run.protection().n_protected + largest_block;
  std::set<int> result = {run.protection().n_protected + (options.strict ? largest_block : 0),
                          least + 1,
                          (least + n_prompt) / 2,
                          n_prompt - 1,
                          n_prompt,
                          n_prompt + 40};
  return {result.begin(), result.end()};
}

TEST_P(PolicyProperties, EveryBlockLeavesWhatThePlanAllows) {
  RecordingPolicy recording(*policy());
  PromptRun exact(world(), nullptr, options());
  exact.finish();
  int n_runs = 0, n_evictions = 0;
  for (const int n_block : kBlockSizes) {
    for (const bool strict : {false, true}) {
      for (const int n_bulk : {0, 50}) {
        RunOptions run_options = options();
        run_options.n_block = n_block;
        run_options.n_bulk = n_bulk;
        run_options.strict = strict;
        run_options.n_decode = 5;
        for (const int budget : budgets(world(), &recording, run_options)) {
          // Nothing is evicted: the bulk stage has no other path.
          if (n_bulk > 0 && budget > world().n_prompt()) continue;
          // Blocks of one row make a hundred runs of the graph.
          if (n_block == 1 && n_bulk > 0) continue;
          SCOPED_TRACE(testing::Message() << "block " << n_block << " budget " << budget
                                          << (strict ? " strict" : "") << " bulk " << n_bulk);
          run_options.budget = budget;
          std::unique_ptr<PromptRun> run;
          try {
            run = std::make_unique<PromptRun>(world(), &recording, run_options);
          } catch (const Error& error) {
            // A block that holds the whole prompt has no room in a strict budget below it.
            ASSERT_TRUE(strict) << error.what();
            ASSERT_EQ(error.code(), ErrorCode::kInvalidArgument);
            continue;
          }
          ++n_runs;
          int largest = 0;
          for (const auto& block : run->blocks()) largest = std::max(largest, block.n_tokens());
          const int n_proxy = recording.needs_question() ? kWindow : 0;
          if (!recording.evicts_only_at_end()) {
            EXPECT_LE(run->plan().n_arena, budget + (strict ? 0 : largest) + n_proxy);
          }
          while (!run->is_done()) {
            const kv::BlockStep step = run->next_step();
            const int n_proxy_now = run->n_proxy_of_next();
            ASSERT_LE(step.n_before + step.n_rows + n_proxy_now, run->plan().n_arena);
            ASSERT_EQ(run->slots().n_held(), step.n_before);
            recording.records.clear();
            run->step();
            ASSERT_NO_THROW(run->slots().check_integrity());
            ASSERT_EQ(run->slots().n_held(), step.n_after);
            ASSERT_EQ(run->slots().n_total(), run->n_done());
            if (!recording.evicts_only_at_end() || run->is_done()) {
              ASSERT_LE(run->slots().n_held(), budget);
            }
            const std::vector<int32_t> must = protected_of(*run, run->n_done());
            for (const std::vector<int32_t>& kept : run->kept()) {
              ASSERT_TRUE(std::is_sorted(kept.begin(), kept.end(), std::less_equal<>()));
              ASSERT_TRUE(kept.empty() || (kept.front() >= 0 && kept.back() < run->n_done()));
              ASSERT_TRUE(std::includes(kept.begin(), kept.end(), must.begin(), must.end()));
            }
            if (step.evicts()) {
              ++n_evictions;
              expect_highest_scores_stayed(recording, *run, run->tokens(), step.n_after);
            } else {
              ASSERT_TRUE(recording.records.empty());  // not asked without need
            }
          }
          ASSERT_TRUE(run->is_untouched_beyond_arena());
          expect_rows_belong_to_their_tokens(*run, exact);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(n_runs, 50);
  EXPECT_GT(n_evictions, recording.evicts_only_at_end() ? 20 : 200);
}

// The policy is irrelevant while everything fits: the same kernels on the same numbers.
TEST_P(PolicyProperties, ABudgetOfThePromptChangesNoBit) {
  for (const int n_block : kBlockSizes) {
    for (const bool strict : {false, true}) {
      for (const int more : {0, 1, 40}) {
        if (n_block == 1 && more == 40) continue;  // a hundred runs of the graph each
        SCOPED_TRACE(testing::Message() << "block " << n_block << " more " << more);
        RunOptions run_options = options();
        run_options.n_block = n_block;
        run_options.strict = strict;
        run_options.n_decode = 10;
        PromptRun exact(world(), nullptr, run_options);
        run_options.budget = world().n_prompt() + more;
        PromptRun run(world(), policy(), run_options);
        const std::vector<float> want = exact.finish();
        ASSERT_FALSE(want.empty());
        if (strict && more == 0) {
          // The last block makes room for the first generated token, so proxies may run behind it
          // and change the order of sums; nothing was evicted before the logits.
          EXPECT_TRUE(nmse_at_most(run.finish(), want, kAcrossBlocksNmse));
          EXPECT_EQ(run.slots().n_held(), world().n_prompt() - 1);
          continue;
        }
        ASSERT_TRUE(bit_equal(run.finish(), want));
        ASSERT_EQ(run.slots().n_held(), world().n_prompt());
        // Then the generated tokens, as long as they fit; the last one that does may evict.
        for (int i = 0; i + 1 < more && i < 5; ++i) {
          ASSERT_TRUE(bit_equal(run.generate(i, 2), exact.generate(i, 2)));
        }
      }
    }
  }
}

TEST_P(PolicyProperties, SameInputSameOutput) {
  RunOptions run_options = options();
  run_options.n_block = 7;
  run_options.budget = 40;
  run_options.n_decode = 100;
  PromptRun first(world(), policy(), run_options), second(world(), policy(), run_options);
  EXPECT_TRUE(bit_equal(first.finish(), second.finish()));
  EXPECT_EQ(first.kept(), second.kept());
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(bit_equal(first.generate(i, 4), second.generate(i, 4)));
  }
  EXPECT_EQ(first.kept(), second.kept());
}

// Several hundred tokens in an arena that is a fraction of them.
TEST_P(PolicyProperties, GenerationOfAnyLengthStaysInTheArena) {
  constexpr int kGenerated = 300, kRecent = 8;
  for (const bool strict : {false, true}) {
    SCOPED_TRACE(strict);
    RunOptions run_options = options();
    run_options.n_block = 7;
    run_options.budget = 48;
    run_options.n_decode = kGenerated;
    run_options.strict = strict;
    RecordingPolicy recording(*policy());
    PromptRun run(world(), &recording, run_options);
    run.finish();
    const std::vector<int32_t> must = protected_of(run, run.n_done());
    ASSERT_LE(static_cast<int>(must.size()) + kRecent, run.plan().n_decode_keep);
    int n_evictions = 0;
    for (int i = 0; i < kGenerated; ++i) {
      const int n_before = run.slots().n_held();
      recording.records.clear();
      const std::vector<float>& logits = run.generate((i * 37) % 256, kRecent);
      ASSERT_FALSE(
          std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); }));
      ASSERT_NO_THROW(run.slots().check_integrity());
      ASSERT_LT(run.slots().n_held(), run.plan().n_decode_limit);
      const int n_proxy = recording.needs_question() ? run.sequence().n_proxy() : 0;
      ASSERT_LE(n_before + 1 + n_proxy, run.plan().n_arena);
      if (run.slots().n_held() <= n_before) {
        ++n_evictions;
        expect_highest_scores_stayed(recording, run, run.sequence().tokens(),
                                     run.plan().n_decode_keep);
      }
      const auto last = static_cast<int32_t>(run.slots().n_total()) - 1;
      for (const std::vector<int32_t>& kept : run.kept()) {
        ASSERT_TRUE(std::includes(kept.begin(), kept.end(), must.begin(), must.end()));
        for (int32_t token = std::max(last - kRecent + 1, run.n_done()); token <= last; ++token) {
          ASSERT_TRUE(std::binary_search(kept.begin(), kept.end(), token)) << token;
        }
      }
    }
    EXPECT_GT(n_evictions, 10);
    EXPECT_TRUE(run.is_untouched_beyond_arena());
    if (HasFatalFailure()) return;
  }
}

// A block that was stopped leaves no trace: run again, it gives what an undisturbed run gives.
TEST_P(PolicyProperties, CancelledAtAnyBlockTheSequenceGoesOn) {
  for (const bool strict : {false, true}) {
    RunOptions run_options = options();
    run_options.n_block = 12;
    run_options.budget = 48;
    run_options.strict = strict;
    run_options.n_decode = 20;
    PromptRun undisturbed(world(), policy(), run_options), run(world(), policy(), run_options);
    undisturbed.finish();
    int n_polls = 0;
    for (int block = 0; !run.is_done(); ++block) {
      const std::vector<std::vector<int32_t>> before = run.kept();
      int n_left = 3 * block;  // at another node of the graph each time
      world().backends().set_cancel_poll([&] { return ++n_polls, n_left-- <= 0; });
      try {
        run.step();
        ADD_FAILURE() << "not cancelled";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kCancelled) << error.what();
      }
      world().backends().set_cancel_poll({});
      ASSERT_NO_THROW(run.slots().check_integrity());
      ASSERT_EQ(run.kept(), before);
      run.step();
    }
    EXPECT_GT(n_polls, 10);
    EXPECT_EQ(run.kept(), undisturbed.kept());
    EXPECT_TRUE(bit_equal(run.finish(), undisturbed.finish()));
  }
}

TEST_P(PolicyProperties, CancelledWhileGeneratingTheSequenceGoesOn) {
  RunOptions run_options = options();
  run_options.n_block = 12;
  run_options.budget = 48;
  run_options.n_decode = 60;
  PromptRun undisturbed(world(), policy(), run_options), run(world(), policy(), run_options);
  undisturbed.finish();
  run.finish();
  for (int i = 0; i < 40; ++i) {
    const std::vector<float> want = undisturbed.generate(i, 4);
    world().backends().set_cancel_poll([n_left = i]() mutable { return n_left-- <= 0; });
    // Where embedding the token is cancelled, too, the row has not been tried yet.
    EXPECT_THROW(run.generate(i, 4), Error);
    world().backends().set_cancel_poll({});
    ASSERT_NO_THROW(run.slots().check_integrity());
    ASSERT_TRUE(bit_equal(run.generate(i, 4), want));
    ASSERT_EQ(run.kept(), undisturbed.kept());
  }
}

// The logits belong to the block's last token, although proxies run behind it.
TEST_P(PolicyProperties, EvictingChangesNoLogitsOfItsOwnBlock) {
  const int n = world().n_prompt();
  const auto proxies_of = [&](PromptRun& run) {
    return engine::question_rows(world().prompt(), run.sequence().runner(), kWindow);
  };
  RunOptions run_options = options();
  run_options.n_block = kAll;
  run_options.budget = n;  // nothing is evicted but by hand
  run_options.n_decode = 100;
  PromptRun evicting(world(), policy(), run_options), keeping(world(), policy(), run_options);
  std::vector<std::vector<float>> logits;
  for (PromptRun* run : {&evicting, &keeping}) {
    engine::Sequence& sequence = run->sequence();
    sequence.set_proxies(proxies_of(*run));
    sequence.append(world().slice(0, 60), 50, /*want_logits=*/false, /*rows_are_proxies=*/false);
    const int n_keep = run == &evicting ? 40 : 53;
    logits.push_back(sequence.append(world().slice(60, 63), n_keep, /*want_logits=*/true,
                                     /*rows_are_proxies=*/false));
  }
  // A few rows more change the order of sums.
  EXPECT_TRUE(nmse_at_most(logits[0], logits[1], kAcrossBlocksNmse));
}

// Until something is evicted, bulk and small blocks fill the same slots with the same rows.
TEST_P(PolicyProperties, BulkThenBlocksEqualsBlocksUntilTheFirstEviction) {
  RunOptions run_options = options();
  run_options.n_block = 12;
  run_options.budget = 60;
  run_options.n_bulk = 0;
  PromptRun blocks(world(), policy(), run_options);
  run_options.n_bulk = 2048;
  PromptRun bulk(world(), policy(), run_options);
  ASSERT_LT(bulk.blocks().size(), blocks.blocks().size());
  for (PromptRun* run : {&blocks, &bulk}) {
    while (!run->next_step().evicts() &&
           run->n_done() + run->next_step().n_rows <= run_options.budget) {
      run->step();
    }
  }
  const int n = std::min(blocks.slots().n_held(), bulk.slots().n_held());
  ASSERT_GT(n, 40);
  for (int il = 0; il < blocks.slots().n_layer(); ++il) {
    for (int head = 0; head < blocks.slots().n_head_kv(); ++head) {
      const auto size = static_cast<size_t>(n);
      const auto a = blocks.slots().tokens(il, head).first(size);
      const auto b = bulk.slots().tokens(il, head).first(size);
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin()));
      const double bound =
          run_options.cache_type == CacheType::kQ8_0 ? kSameRowNmse : kAcrossBlocksNmse;
      const auto compare = [&](const std::vector<float>& got, const std::vector<float>& want) {
        EXPECT_TRUE(
            nmse_at_most(std::span(got).first(size * 32), std::span(want).first(size * 32), bound));
      };
      compare(bulk.stored_k(il, head), blocks.stored_k(il, head));
      compare(bulk.stored_v(il, head), blocks.stored_v(il, head));
    }
  }
}

}  // namespace
}  // namespace plateau::test

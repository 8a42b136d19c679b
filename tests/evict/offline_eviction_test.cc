#include "engine/offline_eviction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "arrays/expect_error.h"
#include "evict/reference_eviction.h"
#include "kv/policy.h"

namespace plateau::engine {
namespace {

using arrays::Array;
using arrays::DType;
using arrays::testing::expect_error;
using test::ReferenceEviction;
using ::testing::ElementsAre;

// f32 against double: rounding of dot products and softmax over some dozens of terms.
constexpr double kScoreTolerance = 1e-5;

/// Uniform in [-2, 2), the same on every machine.
std::vector<float> noise(size_t n, uint64_t seed) {
  std::vector<float> values(n);
  uint64_t x = seed * 0x9E3779B97F4A7C15ULL + 1;
  for (float& value : values) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    value = static_cast<float>(x >> 40) * 0x1p-22f - 2.0f;
  }
  return values;
}

Array view(const std::vector<float>& values, std::vector<int64_t> shape, const char* name) {
  Array array;
  array.where = name;
  array.shape = std::move(shape);
  array.dtype_name = "<f4";
  array.bytes = std::as_bytes(std::span(values));
  return array;
}

/// What `plateau evict` would pass for the same input; points into `in`, which must outlive it.
struct Case {
  explicit Case(const ReferenceEviction& in)
      : keys(view(in.keys, {in.n_head_kv, in.n_tokens, in.head_dim}, "K")),
        queries(view(in.queries, {in.n_head, in.n_window, in.head_dim}, "Q")),
        values(view(in.values, {in.n_head_kv, in.n_tokens, in.head_dim}, "V")) {
    positions.where = "P";
    positions.shape = {in.n_tokens, 3};
    positions.dtype = DType::kI32;
    positions.bytes = std::as_bytes(std::span(in.thw));
    eviction.keys = &keys;
    eviction.queries = &queries;
    eviction.values = &values;
    eviction.positions = in.thw.empty() ? nullptr : &positions;
    eviction.policy = in.policy;
    eviction.policy_options = in.options;
    eviction.budget = in.budget;
    eviction.block = in.block;
    eviction.n_sinks = in.n_sinks;
    eviction.n_recent = in.n_recent;
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  Array keys;
  Array queries;
  Array values;
  Array positions;
  OfflineEviction eviction;
};

ReferenceEviction small_input() {
  ReferenceEviction in;
  in.n_head = 6;
  in.n_head_kv = 2;
  in.n_tokens = 40;
  in.n_window = 5;
  in.head_dim = 8;
  in.keys = noise(2 * 40 * 8, 1);
  in.values = noise(2 * 40 * 8, 2);
  in.queries = noise(6 * 5 * 8, 3);
  in.budget = 11;
  // Two pictures of 4 x 4 with text before, between and after them.
  for (int i = 0; i < 40; ++i) {
    const int cell = i < 18 ? i - 2 : i - 20;
    const bool is_text = i < 2 || i == 18 || i == 19 || i >= 36;
    in.thw.push_back(is_text ? -1 : i < 18 ? 0 : 7);
    in.thw.push_back(is_text ? 0 : cell / 4);
    in.thw.push_back(is_text ? 0 : cell % 4);
  }
  return in;
}

/// Every policy of the registry, and the options of those that pool.
std::vector<ReferenceEviction> all_variants() {
  std::vector<ReferenceEviction> variants;
  for (const kv::PolicyEntry& entry : kv::policies()) {
    variants.push_back(small_input());
    variants.back().policy = entry.name;
  }
  for (const char* policy : {"snapkv", "mix"}) {
    for (const auto& [pool, kernel, axis, group] :
         {std::tuple(Pool::kMax, 7, PoolAxis::kCache, GroupReduction::kMax),
          {Pool::kNone, 5, PoolAxis::kCache, GroupReduction::kMean},
          {Pool::kAverage, 3, PoolAxis::kGrid, GroupReduction::kMean},
          {Pool::kMax, 3, PoolAxis::kGrid, GroupReduction::kMax}}) {
      variants.push_back(small_input());
      variants.back().policy = policy;
      variants.back().options.pool = pool;
      variants.back().options.pool_kernel = kernel;
      variants.back().options.pool_axis = axis;
      variants.back().options.group = group;
    }
  }
  return variants;
}

std::string name_of(const ReferenceEviction& in) {
  return in.policy + " pool " + std::to_string(static_cast<int>(in.options.pool)) + " axis " +
         std::to_string(static_cast<int>(in.options.pool_axis)) + " block " +
         std::to_string(in.block);
}

void expect_reference_scores(const ReferenceEviction& in,
                             const std::vector<std::vector<std::optional<float>>>& scores) {
  std::vector<int32_t> all(static_cast<size_t>(in.n_tokens));
  std::iota(all.begin(), all.end(), 0);
  ASSERT_EQ(scores.size(), static_cast<size_t>(in.n_head_kv));
  for (int head = 0; head < in.n_head_kv; ++head) {
    const std::vector<double> expected = test::reference_scores(in, head, all);
    double scale = 0;
    for (const double x : expected) scale = std::max(scale, std::abs(x));
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_TRUE(scores[static_cast<size_t>(head)][i].has_value());
      EXPECT_NEAR(*scores[static_cast<size_t>(head)][i], expected[i], kScoreTolerance * scale)
          << name_of(in) << ", head " << head << ", token " << i;
    }
  }
}

TEST(OfflineEviction, ScoresAndKeptEqualTheReference) {
  for (const ReferenceEviction& in : all_variants()) {
    Case c(in);
    c.eviction.want_scores = true;
    const OfflineEvictionResult result = evict_offline(c.eviction);
    expect_reference_scores(in, result.scores);
    EXPECT_EQ(result.kept, test::reference_kept(in)) << name_of(in);
  }
}

TEST(OfflineEviction, BlockWiseEqualsThePlainLoop) {
  for (ReferenceEviction in : all_variants()) {
    in.n_sinks = 2;
    in.n_recent = 3;
    for (const int block : {1, 7, 16, 39, 100}) {
      in.block = block;
      const Case c(in);
      EXPECT_EQ(evict_offline(c.eviction).kept, test::reference_kept(in)) << name_of(in);
    }
  }
}

TEST(OfflineEviction, ThreadsDoNotChangeTheResult) {
  for (const ReferenceEviction& in : all_variants()) {
    Case c(in);
    c.eviction.want_scores = true;
    const OfflineEvictionResult one = evict_offline(c.eviction);
    c.eviction.n_threads = 3;
    const OfflineEvictionResult three = evict_offline(c.eviction);
    EXPECT_EQ(one.kept, three.kept);
    EXPECT_EQ(one.scores, three.scores);
  }
}

TEST(OfflineEviction, ScoresWithoutContextDoNotDependOnTheBlock) {
  for (const char* policy : {"value-norm", "random", "sink-recent"}) {
    ReferenceEviction in = small_input();
    in.policy = policy;
    const std::vector<std::vector<int32_t>> at_once = evict_offline(Case(in).eviction).kept;
    for (int block = 1; block < in.n_tokens; ++block) {
      in.block = block;
      EXPECT_EQ(evict_offline(Case(in).eviction).kept, at_once) << policy << ", block " << block;
    }
  }
}

TEST(OfflineEviction, HeadsThatDoNotFitOneGraphAreCut) {
  ReferenceEviction in;
  in.n_head = 6;
  in.n_head_kv = 2;
  in.n_tokens = 4000;
  in.n_window = 1024;  // the scores of two query heads fill a graph
  in.head_dim = 2;
  in.keys = noise(2 * 4000 * 2, 1);
  in.values = noise(2 * 4000 * 2, 2);
  in.queries = noise(6 * 1024 * 2, 3);
  in.policy = "mix";  // signals per query head and per kv head
  in.budget = in.n_tokens;
  Case c(in);
  c.eviction.want_scores = true;
  expect_reference_scores(in, evict_offline(c.eviction).scores);
}

TEST(OfflineEviction, OfEqualScoresTheOlderStay) {
  ReferenceEviction in = small_input();
  const std::vector<int32_t> oldest = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  std::fill(in.queries.begin(), in.queries.end(), 0.0f);  // attends to all keys alike
  in.options.pool = Pool::kNone;
  in.policy = "snapkv";
  EXPECT_THAT(evict_offline(Case(in).eviction).kept, ElementsAre(oldest, oldest));

  std::fill(in.keys.begin(), in.keys.end(), 0.0f);
  std::fill(in.values.begin(), in.values.end(), 3.0f);
  for (const char* policy : {"keydiff", "value-norm", "mix"}) {
    in.policy = policy;
    for (const int block : {0, 1, 6}) {
      in.block = block;
      EXPECT_THAT(evict_offline(Case(in).eviction).kept, ElementsAre(oldest, oldest)) << policy;
    }
  }
}

TEST(OfflineEviction, AdversarialKeysScoreAsTheReferenceDoes) {
  for (const char* policy : {"snapkv", "keydiff", "mix"}) {
    ReferenceEviction in = small_input();
    in.policy = policy;
    // One dominant direction with a few zero keys and one that points the other way.
    for (size_t i = 0; i < in.keys.size(); ++i) {
      const size_t token = i / 8 % 40;
      const float dominant = i % 8 == 0 ? 50.0f : 0.0f;
      in.keys[i] = token % 9 == 4 ? 0.0f : in.keys[i] + (token == 20 ? -dominant : dominant);
    }
    Case c(in);
    c.eviction.want_scores = true;
    expect_reference_scores(in, evict_offline(c.eviction).scores);
  }
}

TEST(OfflineEviction, ScoresAreThoseOfTheLastScoring) {
  ReferenceEviction in = small_input();
  in.policy = "sink-recent";
  in.budget = 4;
  in.block = 10;
  Case c(in);
  c.eviction.want_scores = true;
  const OfflineEvictionResult result = evict_offline(c.eviction);
  EXPECT_THAT(result.kept[0], ElementsAre(36, 37, 38, 39));
  // The last block found 26 to 29 held and added 30 to 39.
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(result.scores[1][i], i < 26 ? std::nullopt : std::optional(static_cast<float>(i)));
  }
}

TEST(OfflineEviction, KeepsAllWhereAllFit) {
  for (const kv::PolicyEntry& entry : kv::policies()) {
    for (const int block : {0, 7}) {
      ReferenceEviction in = small_input();
      in.policy = entry.name;
      in.budget = 40;
      in.block = block;
      Case c(in);
      c.eviction.want_scores = true;
      const OfflineEvictionResult result = evict_offline(c.eviction);
      EXPECT_EQ(result.kept[1].size(), 40u);
      expect_reference_scores(in, result.scores);
    }
  }
}

TEST(OfflineEviction, FullKeepsAllAndHasNoScores) {
  ReferenceEviction in = small_input();
  in.policy = "full";
  in.budget = 3;
  Case c(in);
  c.eviction.want_scores = true;
  const OfflineEvictionResult result = evict_offline(c.eviction);
  EXPECT_EQ(result.kept[0].size(), 40u);
  EXPECT_EQ(result.scores[0][0], std::nullopt);
}

TEST(OfflineEviction, AsksOnlyForWhatThePolicyReads) {
  const auto evict = [](const char* policy, bool with_queries, bool with_values) {
    ReferenceEviction in = small_input();
    in.policy = policy;
    Case c(in);
    if (!with_queries) c.eviction.queries = nullptr;
    if (!with_values) c.eviction.values = nullptr;
    evict_offline(c.eviction);
  };
  for (const char* policy : {"keydiff", "random", "sink-recent", "full"}) {
    EXPECT_NO_THROW(evict(policy, false, false)) << policy;
  }
  EXPECT_NO_THROW(evict("snapkv", true, false));
  EXPECT_NO_THROW(evict("value-norm", false, true));
  const auto code = ErrorCode::kInvalidArgument;
  expect_error(code, "--queries", [&] { evict("snapkv", false, true); });
  expect_error(code, "--queries", [&] { evict("block-attention", false, true); });
  expect_error(code, "--values", [&] { evict("value-norm", true, false); });
  expect_error(code, "--values", [&] { evict("mix", true, false); });
}

TEST(OfflineEviction, RefusesNumbersThatOverflow) {
  for (const char* policy : {"snapkv", "value-norm", "mix"}) {
    ReferenceEviction in = small_input();
    in.policy = policy;
    in.keys[5] = in.values[5] = 3e38f;
    in.queries[5] = -3e38f;
    expect_error(ErrorCode::kCorrupt, "overflow", [&] { evict_offline(Case(in).eviction); });
  }
}

TEST(OfflineEviction, RefusesPositionsThatAreNoGrid) {
  ReferenceEviction in = small_input();
  in.policy = "snapkv";
  in.options.pool_axis = PoolAxis::kGrid;
  const auto evict = [&] { evict_offline(Case(in).eviction); };
  EXPECT_NO_THROW(evict());
  in.thw[3 * 3 + 1] = 2'000'000;
  expect_error(ErrorCode::kCorrupt, "row 3", evict);
  in.thw[3 * 3 + 1] = 1'000'000;
  in.thw[3 * 4 + 2] = 1'000'000;
  expect_error(ErrorCode::kResourceExhausted, "cells", evict);
  in.thw.clear();
  expect_error(ErrorCode::kInvalidArgument, "--positions", evict);
}

TEST(OfflineEviction, CanBeCancelled) {
  ReferenceEviction in = small_input();
  in.policy = "keydiff";
  in.block = 1;
  Case c(in);
  int n_polls = 0;
  c.eviction.should_cancel = [&] { return ++n_polls > 20; };
  expect_error(ErrorCode::kCancelled, "interrupted", [&] { evict_offline(c.eviction); });
}

}  // namespace
}  // namespace plateau::engine

// The points of a sweep, in order and without repetition.
#include "bench/sweep.h"

#include <gmock/gmock.h>

#include <tuple>

namespace plateau::bench {
namespace {

using ::testing::ElementsAre;

Sweep small_sweep() {
  Sweep sweep;
  sweep.n_inputs = {1024, 4096};
  sweep.budgets = {{.budget = 0}, {.budget = 256}};
  sweep.policies = {"snapkv", "keydiff"};
  sweep.blocks = {{.block = 0}};
  sweep.cache_types_k = {CacheType::kF16};
  sweep.cache_types_v = {CacheType::kF16};
  sweep.threads = {2};
  return sweep;
}

TEST(Expand, AllCombinationsWithTheFullCacheOnce) {
  std::vector<std::tuple<int64_t, int, std::string>> points;
  for (const BenchPoint& p : expand(small_sweep())) {
    points.emplace_back(p.n_input, p.request.kv.budget, p.request.kv.policy);
  }
  EXPECT_THAT(points,
              ElementsAre(std::tuple(1024, 0, "full"), std::tuple(1024, 256, "snapkv"),
                          std::tuple(1024, 256, "keydiff"), std::tuple(4096, 0, "full"),
                          std::tuple(4096, 256, "snapkv"), std::tuple(4096, 256, "keydiff")));
}

TEST(Expand, BlocksVaryFastestAndKeepTheirUnit) {
  Sweep sweep = small_sweep();
  sweep.n_inputs = {1024};
  sweep.budgets = {{.budget = 256}};
  sweep.policies = {"snapkv"};
  sweep.blocks = {{.block = 128}, {.block_unit = BlockUnit::kTile}};
  const auto points = expand(sweep);
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].request.kv.block, 128);
  EXPECT_EQ(points[1].request.kv.block_unit, BlockUnit::kTile);
}

TEST(Expand, CacheTypesAndThreadsReachTheEngine) {
  Sweep sweep = small_sweep();
  sweep.threads = {1, 2};
  sweep.cache_types_k = {CacheType::kF16, CacheType::kQ8_0};
  const auto points = expand(sweep);
  EXPECT_EQ(points.size(), 24u);
  EXPECT_EQ(points.front().engine.n_threads, 1);
  EXPECT_EQ(points.back().engine.n_threads, 2);
  EXPECT_EQ(points.back().engine.cache_type_k, CacheType::kQ8_0);
}

TEST(Expand, APictureIsOneInput) {
  Sweep sweep = small_sweep();
  sweep.base.input = InputKind::kImage;
  EXPECT_EQ(expand(sweep).size(), 3u);
}

}  // namespace
}  // namespace plateau::bench

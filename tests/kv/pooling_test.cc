#include "kv/pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "kv/draw.h"
#include "plateau/error.h"

namespace plateau::kv {
namespace {

using test::draw;
using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

std::vector<float> along(std::vector<float> scores, Pool pool, int kernel) {
  pool_along_cache(scores, pool, kernel);
  return scores;
}

// 1-D average pooling as torch has it by default: zeros beyond the ends count.
TEST(PoolAlongCache, AverageCountsThePadding) {
  EXPECT_THAT(along({5, 10, 15, 20, 25, 30}, Pool::kAverage, 5),
              ElementsAre(6, 10, 15, 20, 18, 15));
  EXPECT_THAT(along({10}, Pool::kAverage, 5), ElementsAre(2));
  EXPECT_THAT(along({3, 6}, Pool::kAverage, 3), ElementsAre(3, 3));
}

TEST(PoolAlongCache, MaximumKnowsNoPadding) {
  EXPECT_THAT(along({-5, -1, -7, -9, -3}, Pool::kMax, 3), ElementsAre(-1, -1, -1, -3, -3));
  EXPECT_THAT(along({-5}, Pool::kMax, 7), ElementsAre(-5));
}

TEST(PoolAlongCache, NothingToPool) {
  const std::vector<float> scores = {3, 1, 4, 1, 5};
  EXPECT_EQ(along(scores, Pool::kAverage, 1), scores);
  EXPECT_EQ(along(scores, Pool::kMax, 1), scores);
  EXPECT_EQ(along(scores, Pool::kNone, 5), scores);
  EXPECT_TRUE(along({}, Pool::kAverage, 5).empty());
}

TEST(PoolAlongCache, AnEvenKernelIsABug) {
  std::vector<float> scores(4);
  EXPECT_THROW(pool_along_cache(scores, Pool::kAverage, 4), Error);
  EXPECT_THROW(pool_along_cache(scores, Pool::kAverage, 0), Error);
  EXPECT_THROW(pool_on_grid(scores, std::vector<TokenInfo>(4), Pool::kAverage, 2), Error);
}

// For every pair of tokens: are they neighbours?
std::vector<float> grid_by_pairs(const std::vector<float>& scores,
                                 const std::vector<TokenInfo>& tokens, Pool pool, int kernel) {
  std::vector<float> result = scores;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const TokenInfo& center = tokens[i];
    if (center.plane < 0) continue;
    double sum = 0;
    int n = 0;
    float top = scores[i];
    for (size_t j = 0; j < tokens.size(); ++j) {
      const TokenInfo& other = tokens[j];
      if (other.plane != center.plane || std::abs(other.h - center.h) > kernel / 2 ||
          std::abs(other.w - center.w) > kernel / 2) {
        continue;
      }
      sum += scores[j];
      top = std::max(top, scores[j]);
      ++n;
    }
    result[i] = pool == Pool::kMax ? top : static_cast<float>(sum / n);
  }
  return result;
}

// Text, two pictures with a thumbnail each, of which anything may have been evicted.
TEST(PoolOnGrid, EqualsAPlainLoopOverPairs) {
  test::Rng rng(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<TokenInfo> info;
    for (int plane = -1; plane < 4; ++plane) {
      const int n_rows = draw(rng, 1, 6), n_cols = draw(rng, 1, 6);
      const int h0 = draw(rng, 0, 3), w0 = draw(rng, 0, 3);
      for (int i = 0; i < n_rows * n_cols; ++i) {
        TokenInfo token;
        token.plane = plane;
        token.h = plane < 0 ? 0 : h0 + i / n_cols;
        token.w = plane < 0 ? 0 : w0 + i % n_cols;
        info.push_back(token);
      }
    }
    const int share = draw(rng, 1, 10);
    std::vector<TokenInfo> tokens;
    std::vector<float> scores;
    for (const TokenInfo& token : info) {
      if (draw(rng, 1, 10) > share) continue;
      tokens.push_back(token);
      scores.push_back(static_cast<float>(draw(rng, -100, 100)));
    }
    for (const Pool pool : {Pool::kAverage, Pool::kMax}) {
      for (const int kernel : {1, 3, 5, 9}) {
        std::vector<float> got = scores;
        pool_on_grid(got, tokens, pool, kernel);
        ASSERT_THAT(got, Pointwise(FloatNear(1e-4F), grid_by_pairs(scores, tokens, pool, kernel)));
      }
    }
    std::vector<float> untouched = scores;
    pool_on_grid(untouched, tokens, Pool::kNone, 5);
    ASSERT_EQ(untouched, scores);
  }
}

// Neighbours on the grid lie a row apart in the cache; a hole counts for nothing.
TEST(PoolOnGrid, ByHand) {
  // 0 1
  // 2 .   and one token of text
  std::vector<TokenInfo> info(5);
  for (int i = 0; i < 4; ++i) {
    info[static_cast<size_t>(i)].plane = 0;
    info[static_cast<size_t>(i)].h = i / 2;
    info[static_cast<size_t>(i)].w = i % 2;
  }
  info.erase(info.begin() + 3);
  std::vector<float> scores = {3, 6, 9, 100};
  pool_on_grid(scores, info, Pool::kAverage, 3);
  EXPECT_THAT(scores, ElementsAre(6, 6, 6, 100));
}

LayerSlots layer_of(int n_head, int n_head_kv, int n_held) {
  LayerSlots layer;
  layer.n_head = n_head;
  layer.n_head_kv = n_head_kv;
  layer.n_held = n_held;
  return layer;
}

TEST(ReduceGroup, MeanAndMaximumOverTheHeadsOfAGroup) {
  const LayerSlots layer = layer_of(4, 2, 2);
  const std::vector<float> per_head = {1, 2, /**/ 3, 8, /**/ 5, 6, /**/ 7, 0};
  std::vector<float> scores(4);
  reduce_group(per_head, layer, GroupReduction::kMean, scores);
  EXPECT_THAT(scores, ElementsAre(2, 5, 6, 3));
  reduce_group(per_head, layer, GroupReduction::kMax, scores);
  EXPECT_THAT(scores, ElementsAre(3, 8, 7, 6));
}

TEST(ReduceGroup, AGroupOfOneIsItself) {
  const std::vector<float> per_head = {1, 2, 3, 4};
  std::vector<float> scores(4);
  for (const GroupReduction reduction : {GroupReduction::kMean, GroupReduction::kMax}) {
    reduce_group(per_head, layer_of(2, 2, 2), reduction, scores);
    EXPECT_EQ(scores, per_head);
  }
  EXPECT_THROW(reduce_group(per_head, layer_of(2, 2, 3), GroupReduction::kMean, scores), Error);
}

// Heads are pooled by themselves: nothing flows over from one to the next.
TEST(AttentionScores, ReducesThenPoolsEachHead) {
  std::vector<int32_t> tokens(5);
  std::iota(tokens.begin(), tokens.end(), 0);
  LayerSlots layer = layer_of(2, 2, 5);
  layer.tokens = {tokens, tokens};
  const std::vector<float> attention = {0, 0, 0, 0, 9, /**/ 0, 0, 0, 0, 0};
  std::vector<float> scores(10);
  attention_scores(attention, layer, {.pool = Pool::kAverage, .pool_kernel = 3}, scores);
  EXPECT_THAT(scores, ElementsAre(0, 0, 0, 3, 3, 0, 0, 0, 0, 0));

  // On the grid: one column of five rows in the second half of the tokens' list.
  std::vector<TokenInfo> info(5);
  info[0].plane = info[4].plane = 0;
  info[4].h = 1;
  layer.info = {info, info};
  attention_scores(attention, layer,
                   {.pool = Pool::kMax, .pool_kernel = 3, .pool_axis = PoolAxis::kGrid}, scores);
  EXPECT_THAT(scores, ElementsAre(9, 0, 0, 0, 9, 0, 0, 0, 0, 0));
}

}  // namespace
}  // namespace plateau::kv

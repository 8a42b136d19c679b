#include "kv/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "kv/draw.h"
#include "plateau/error.h"

namespace plateau::kv {
namespace {

using test::draw;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Sorts everything: protected first, then by score, then by age.
std::vector<int32_t> by_sorting(const std::vector<float>& scores,
                                const std::vector<uint8_t>& is_protected, int n_keep) {
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const auto slot_a = static_cast<size_t>(a), slot_b = static_cast<size_t>(b);
    const bool first_a = is_protected[slot_a] != 0, first_b = is_protected[slot_b] != 0;
    if (first_a || first_b) return first_a && !first_b;
    return scores[slot_a] > scores[slot_b];
  });
  order.resize(static_cast<size_t>(n_keep));
  std::sort(order.begin(), order.end());
  return order;
}

TEST(Select, KeepsTheHighestInOrderOfAge) {
  EXPECT_THAT(select_kept(std::vector<float>{1, 5, 3, 4}, std::vector<uint8_t>(4), 2),
              ElementsAre(1, 3));
}

TEST(Select, OnATieTheOlderStays) {
  EXPECT_THAT(select_kept(std::vector<float>{2, 2, 2, 2, 3}, std::vector<uint8_t>(5), 3),
              ElementsAre(0, 1, 4));
  // Zero is zero, whatever its sign.
  EXPECT_THAT(select_kept(std::vector<float>{-0.0F, 0.0F, -0.0F}, std::vector<uint8_t>(3), 2),
              ElementsAre(0, 1));
}

TEST(Select, ProtectedStaysWhateverItsScore) {
  EXPECT_THAT(
      select_kept(std::vector<float>{-kInfinity, 5, 3, 4}, std::vector<uint8_t>{1, 0, 7, 0}, 3),
      ElementsAre(0, 1, 2));
  EXPECT_THAT(select_kept(std::vector<float>{1, 2, 3}, std::vector<uint8_t>{1, 1, 0}, 2),
              ElementsAre(0, 1));
}

TEST(Select, NothingAndEverything) {
  const std::vector<float> scores = {1, 5, 3};
  const std::vector<uint8_t> unprotected(3);
  EXPECT_THAT(select_kept(scores, unprotected, 0), IsEmpty());
  EXPECT_THAT(select_kept(scores, unprotected, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(select_kept({}, {}, 0), IsEmpty());
}

TEST(Select, InfinitiesAreScores) {
  EXPECT_THAT(select_kept(std::vector<float>{-kInfinity, kInfinity, 0, kInfinity},
                          std::vector<uint8_t>(4), 3),
              ElementsAre(1, 2, 3));
}

TEST(Select, NanIsRefusedEvenWhereItIsProtected) {
  for (const uint8_t flag : {uint8_t{0}, uint8_t{1}}) {
    try {
      select_kept(std::vector<float>{1, std::numeric_limits<float>::quiet_NaN(), 3},
                  std::vector<uint8_t>{0, flag, 0}, 2);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInternal);
      EXPECT_THAT(error.what(), testing::HasSubstr("slot 1"));
    }
  }
}

TEST(Select, WhatCannotBeKeptIsABug) {
  const std::vector<float> scores = {1, 2, 3};
  EXPECT_THROW(select_kept(scores, std::vector<uint8_t>{1, 1, 0}, 1), Error);
  EXPECT_THROW(select_kept(scores, std::vector<uint8_t>(3), 4), Error);
  EXPECT_THROW(select_kept(scores, std::vector<uint8_t>(3), -1), Error);
  EXPECT_THROW(select_kept(scores, std::vector<uint8_t>(2), 1), Error);
}

TEST(Select, EqualsSortingEverything) {
  test::Rng rng(1);
  for (int round = 0; round < 5000; ++round) {
    const int n = draw(rng, 0, 60);
    const int n_levels = draw(rng, 1, 20);  // few levels: many ties
    std::vector<float> scores;
    std::vector<uint8_t> is_protected;
    int n_protected = 0;
    for (int i = 0; i < n; ++i) {
      scores.push_back(static_cast<float>(draw(rng, -n_levels, n_levels)));
      is_protected.push_back(draw(rng, 0, 4) == 0 ? 1 : 0);
      n_protected += is_protected.back();
    }
    const int n_keep = draw(rng, n_protected, n);
    ASSERT_EQ(select_kept(scores, is_protected, n_keep), by_sorting(scores, is_protected, n_keep));
  }
}

}  // namespace
}  // namespace plateau::kv

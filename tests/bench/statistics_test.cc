// Medians, spreads and ratios against values worked out by hand.
#include "bench/statistics.h"

#include <gtest/gtest.h>

namespace plateau::bench {
namespace {

TEST(SpreadOf, OddNumber) {
  const Spread spread = spread_of({5, 1, 9});
  EXPECT_EQ(spread.median, 5);
  EXPECT_EQ(spread.min, 1);
  EXPECT_EQ(spread.max, 9);
}

TEST(SpreadOf, EvenNumberTakesTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(spread_of({8, 2, 4, 1}).median, 3);
}

TEST(SpreadOf, OneValue) {
  const Spread spread = spread_of({7});
  EXPECT_EQ(spread.median, 7);
  EXPECT_EQ(spread.min, spread.max);
}

TEST(SpreadOf, NoValueIsAnError) { EXPECT_THROW(spread_of({}), Error); }

TEST(SpreadOfRatios, PairsBeforeTheMedian) {
  // The ratio of the medians would be 30 / 10.
  const Spread ratio = spread_of_ratios({20, 30, 80}, {10, 5, 20});
  EXPECT_EQ(ratio.median, 4);
  EXPECT_EQ(ratio.min, 2);
  EXPECT_EQ(ratio.max, 6);
}

}  // namespace
}  // namespace plateau::bench

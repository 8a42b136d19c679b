#include "base/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace plateau {
namespace {

TEST(MeanWithError, OfZerosAndOnesIsBinomial) {
  // 7 of 10: sqrt(0.7 * 0.3 / 10) = 0.144913767...
  const std::vector<double> values = {1, 1, 1, 0, 1, 0, 1, 1, 0, 1};
  const MeanWithError result = mean_with_error(values);
  EXPECT_DOUBLE_EQ(result.mean, 0.7);
  EXPECT_NEAR(result.standard_error, 0.14491376746189438, 1e-15);
}

TEST(MeanWithError, OfSharesIsTheErrorOfTheirMean) {
  // Mean 0.5, squares of deviations 0.125 in all: sqrt(0.125 / 4 / 4).
  const MeanWithError result = mean_with_error(std::vector<double>{0.25, 0.75, 0.5, 0.5});
  EXPECT_DOUBLE_EQ(result.mean, 0.5);
  EXPECT_NEAR(result.standard_error, 0.088388347648318447, 1e-15);
}

TEST(MeanWithError, OfNothingIsZero) {
  EXPECT_EQ(mean_with_error({}).mean, 0);
  EXPECT_EQ(mean_with_error({}).standard_error, 0);
}

TEST(McNemarExact, AgreesWithSumsByHand) {
  // 2 (1 + 12 + 66) / 2^12
  EXPECT_NEAR(mcnemar_exact_p(2, 10), 158.0 / 4096, 1e-14);
  EXPECT_NEAR(mcnemar_exact_p(10, 2), 158.0 / 4096, 1e-14);
  EXPECT_NEAR(mcnemar_exact_p(0, 5), 2.0 / 32, 1e-15);
  // 2 (1 + 9 + 36) / 2^9
  EXPECT_NEAR(mcnemar_exact_p(7, 2), 92.0 / 512, 1e-14);
}

// statsmodels' documentation of mcnemar, and Agresti's table of approval ratings behind it: 150 and
// 86 discordant pairs, exact p-value 3.7e-05 (R: binom.test(86, 236)$p.value).
TEST(McNemarExact, AgreesWithAPublishedExample) {
  EXPECT_NEAR(mcnemar_exact_p(86, 150), 3.716e-05, 5e-08);
}

TEST(McNemarExact, IsOneWithoutEvidence) {
  EXPECT_EQ(mcnemar_exact_p(0, 0), 1);
  EXPECT_EQ(mcnemar_exact_p(4, 4), 1);
  EXPECT_EQ(mcnemar_exact_p(1, 0), 1);
}

TEST(McNemarExact, LargeCountsDoNotOverflow) {
  const double p = mcnemar_exact_p(50000, 50500);
  // Normal approximation with continuity correction: z = 499 / sqrt(100500), p = erfc(z / sqrt 2).
  const double z = 499 / std::sqrt(100500.0);
  EXPECT_NEAR(p, std::erfc(z / std::sqrt(2.0)), 1e-4);
}

// The example in scipy.stats.pearsonr's documentation: r = -0.828503883588428.
TEST(Pearson, AgreesWithScipy) {
  const std::vector<double> x = {1, 2, 3, 4, 5, 6, 7};
  const std::vector<double> y = {10, 9, 2.5, 6, 4, 3, 2};
  EXPECT_NEAR(pearson(x, y).value(), -0.828503883588428, 1e-14);
}

// The example in scipy.stats.spearmanr's documentation, which has a tie: 0.82078268166812329.
TEST(Spearman, AgreesWithScipy) {
  const std::vector<double> x = {1, 2, 3, 4, 5};
  const std::vector<double> y = {5, 6, 7, 8, 7};
  EXPECT_NEAR(spearman(x, y).value(), 0.82078268166812329, 1e-14);
}

TEST(Correlation, IsExactOnALineAndOnAnyIncrease) {
  const std::vector<double> x = {0.1, 0.2, 0.4, 0.8};
  EXPECT_NEAR(pearson(x, std::vector<double>{3, 5, 9, 17}).value(), 1, 1e-15);
  EXPECT_NEAR(spearman(x, std::vector<double>{-1, 0, 100, 101}).value(), 1, 1e-15);
  EXPECT_NEAR(spearman(x, std::vector<double>{4, 3, 2, 1}).value(), -1, 1e-15);
}

TEST(Correlation, NeedsVariation) {
  const std::vector<double> constant = {1, 1, 1};
  const std::vector<double> varied = {1, 2, 3};
  EXPECT_FALSE(pearson(constant, varied));
  EXPECT_FALSE(
      pearson(std::vector<double>(7, 19.0 / 24), std::vector<double>{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_FALSE(spearman(varied, constant));
  EXPECT_FALSE(pearson({}, {}));
  EXPECT_FALSE(pearson(std::vector<double>{1}, std::vector<double>{1}));
}

TEST(Median, OfOddEvenAndNone) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({}), 0);
}

}  // namespace
}  // namespace plateau

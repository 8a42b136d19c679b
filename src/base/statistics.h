// The few statistics that tell a difference from chance. Pure.
// Tested by tests/base/statistics_test.cc against values from elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plateau {

struct MeanWithError {
  double mean = 0;
  /// sqrt(variance / n) with the variance over n: for zeros and ones this is the binomial
  /// sqrt(p (1 - p) / n).
  double standard_error = 0;
};

/// Both 0 where there are no values.
MeanWithError mean_with_error(std::span<const double> values);

/// Two-sided exact McNemar test: the probability, if both were equally good, of pairs as unevenly
/// split as (n_only_first, n_only_second) or more: min(1, 2 P[X <= min]), X ~ Binomial(sum, 1/2)
/// (McNemar 1947; the exact form as in R's exact2x2 and statsmodels). 1 where no pair differs.
/// REQUIRES: neither is negative.
double mcnemar_exact_p(int64_t n_only_first, int64_t n_only_second);

/// Pearson's r; nothing with fewer than 2 values or where one side does not vary.
/// REQUIRES: as many x as y.
std::optional<double> pearson(std::span<const double> x, std::span<const double> y);

/// Spearman's rho: Pearson's r of ranks, equal values sharing the mean of their ranks.
std::optional<double> spearman(std::span<const double> x, std::span<const double> y);

/// 0 where there are no values; the mean of the two middle ones for an even number.
double median(std::vector<double> values);

}  // namespace plateau

#include "base/statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/check.h"

namespace plateau {
namespace {

std::vector<double> ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double rank = static_cast<double>(begin + 1 + end) / 2;  // ranks begin + 1 .. end
    for (size_t i = begin; i < end; ++i) result[order[i]] = rank;
    begin = end;
  }
  return result;
}

}  // namespace

MeanWithError mean_with_error(std::span<const double> values) {
  if (values.empty()) return {};
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {.mean = mean, .standard_error = std::sqrt(squares / n / n)};
}

double mcnemar_exact_p(int64_t n_only_first, int64_t n_only_second) {
  PLATEAU_CHECK(n_only_first >= 0 && n_only_second >= 0);
  const int64_t n = n_only_first + n_only_second;
  const int64_t fewer = std::min(n_only_first, n_only_second);
  if (n == 0) return 1;
  // log C(n, i) - n log 2, so that large n do not overflow.
  const auto log_half_n = static_cast<double>(n) * std::log(0.5);
  double p = 0;
  double log_choose = 0;
  for (int64_t i = 0; i <= fewer; ++i) {
    if (i > 0) log_choose += std::log(static_cast<double>(n - i + 1) / static_cast<double>(i));
    p += std::exp(log_choose + log_half_n);
  }
  return std::min(1.0, 2 * p);
}

std::optional<double> pearson(std::span<const double> x, std::span<const double> y) {
  PLATEAU_CHECK(x.size() == y.size());
  // Compared, not computed: the variance of equal values need not come out as exactly zero.
  const auto varies = [](std::span<const double> values) {
    return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) != values.end();
  };
  if (!varies(x) || !varies(y)) return {};
  const auto n = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xx = 0;
  double yy = 0;
  double xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  return std::clamp(xy / std::sqrt(xx) / std::sqrt(yy), -1.0, 1.0);
}

std::optional<double> spearman(std::span<const double> x, std::span<const double> y) {
  return pearson(ranks(x), ranks(y));
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace plateau

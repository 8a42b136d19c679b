// Median and spread of repeated measurements.
#pragma once

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/statistics.h"

namespace plateau::bench {

struct Spread {
  double median = 0;  // the mean of the middle two of an even number
  double min = 0;
  double max = 0;
};

/// REQUIRES: not empty.
inline Spread spread_of(const std::vector<double>& values) {
  PLATEAU_CHECK(!values.empty());
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  return {median(values), *min, *max};
}

/// The spread of a[i] / b[i]: both sides of each ratio were measured one after the other.
/// REQUIRES: as many of both, b[i] != 0.
inline Spread spread_of_ratios(const std::vector<double>& a, const std::vector<double>& b) {
  PLATEAU_CHECK(a.size() == b.size());
  std::vector<double> ratios;
  for (size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  return spread_of(ratios);
}

}  // namespace plateau::bench

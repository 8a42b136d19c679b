#include "support/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/check.h"

namespace plateau::test {

double nmse(std::span<const float> got, std::span<const float> want) {
  if (got.size() != want.size()) return std::numeric_limits<double>::infinity();
  double error = 0, power = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double difference = double{got[i]} - double{want[i]};
    error += difference * difference;
    power += double{want[i]} * double{want[i]};
  }
  if (error == 0) return 0;
  return error / power;
}

size_t argmax(std::span<const float> values) {
  PLATEAU_CHECK(!values.empty());
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

::testing::AssertionResult nmse_at_most(std::span<const float> got, std::span<const float> want,
                                        double bound) {
  if (got.size() != want.size()) {
    return ::testing::AssertionFailure()
           << "expected " << want.size() << " values, got " << got.size();
  }
  double power = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (!std::isfinite(got[i]) || !std::isfinite(want[i])) {
      return ::testing::AssertionFailure() << fmt::format(
                 "first value that is not finite at index {}: got {}, want {}", i, got[i], want[i]);
    }
    power += double{want[i]} * double{want[i]};
  }
  const double found = nmse(got, want);
  if (found <= bound) return ::testing::AssertionSuccess() << fmt::format("nmse {:.3g}", found);

  // An element is bad when its own squared error exceeds what the bound grants on average.
  const double allowed = std::sqrt(bound * power / static_cast<double>(want.size()));
  size_t first_bad = want.size(), worst = 0;
  double worst_error = -1;
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(double{got[i]} - double{want[i]});
    if (error > allowed && first_bad == want.size()) first_bad = i;
    if (error > worst_error) {
      worst = i;
      worst_error = error;
    }
  }
  return ::testing::AssertionFailure() << fmt::format(
             "nmse {:.3g} exceeds {:.3g} over {} values; first bad index {}: got {}, want {}; "
             "max error {:.3g} at index {}: got {}, want {}",
             found, bound, want.size(), first_bad, got[first_bad], want[first_bad], worst_error,
             worst, got[worst], want[worst]);
}

::testing::AssertionResult bit_equal(std::span<const float> got, std::span<const float> want) {
  if (got.size() != want.size()) {
    return ::testing::AssertionFailure()
           << "expected " << want.size() << " values, got " << got.size();
  }
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(want[i])) continue;
    return ::testing::AssertionFailure()
           << fmt::format("first difference at index {} of {}: got {}, want {}; nmse {:.3g}", i,
                          want.size(), got[i], want[i], nmse(got, want));
  }
  return ::testing::AssertionSuccess();
}

}  // namespace plateau::test

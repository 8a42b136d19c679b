// Comparing vectors of numbers the way the field does: normalised mean squared error in double.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <span>

namespace plateau::test {

/// sum((got - want)^2) / sum(want^2); 0 when both are all zero, infinity when only `want` is or
/// when the sizes differ, NaN when either holds one.
double nmse(std::span<const float> got, std::span<const float> want);

/// Index of the largest value, the first one on a tie. REQUIRES: not empty.
size_t argmax(std::span<const float> values);

/// Succeeds when nmse(got, want) <= bound and every value is finite. A failure names the first
/// index that is off by more than the bound allows on average, and the largest error with its
/// index.
::testing::AssertionResult nmse_at_most(std::span<const float> got, std::span<const float> want,
                                        double bound);

/// Succeeds when the two are equal bit for bit (so that NaN equals itself and 0 differs from -0).
::testing::AssertionResult bit_equal(std::span<const float> got, std::span<const float> want);

}  // namespace plateau::test

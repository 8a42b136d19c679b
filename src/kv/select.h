// Picks what stays: the highest scores among what may be evicted, and everything protected. Written
// once for all policies. Pure.
// Tested by tests/kv/select_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plateau::kv {

/// Slots that stay, ascending: all protected ones, and of the others the highest scores, n_keep in
/// all. Equal scores: the older token stays (slots ascend with age).
/// `is_protected` has one entry per slot, non-zero for protected.
/// REQUIRES: n_keep <= number of slots, and at least as many as are protected.
/// Errors: kInternal when a score is NaN.
std::vector<int32_t> select_kept(std::span<const float> scores,
                                 std::span<const uint8_t> is_protected, int n_keep);

}  // namespace plateau::kv

#include "kv/select.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace plateau::kv {

std::vector<int32_t> select_kept(std::span<const float> scores,
                                 std::span<const uint8_t> is_protected, int n_keep) {
  PLATEAU_CHECK(scores.size() == is_protected.size());
  PLATEAU_CHECK(n_keep >= 0 && static_cast<size_t>(n_keep) <= scores.size());
  std::vector<int32_t> kept;
  std::vector<int32_t> candidates;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) {
      throw_error(ErrorCode::kInternal, "[eviction] expected scores, got NaN for slot {}", i);
    }
    (is_protected[i] != 0 ? kept : candidates).push_back(static_cast<int32_t>(i));
  }
  PLATEAU_CHECK(kept.size() <= static_cast<size_t>(n_keep));
  const auto n_more = static_cast<std::ptrdiff_t>(static_cast<size_t>(n_keep) - kept.size());
  std::nth_element(candidates.begin(), candidates.begin() + n_more, candidates.end(),
                   [&](int32_t a, int32_t b) {
                     const float score_a = scores[static_cast<size_t>(a)];
                     const float score_b = scores[static_cast<size_t>(b)];
                     return score_a != score_b ? score_a > score_b : a < b;
                   });
  kept.insert(kept.end(), candidates.begin(), candidates.begin() + n_more);
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace plateau::kv

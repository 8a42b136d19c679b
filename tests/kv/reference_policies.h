// Scores of the eviction policies as the formulas say (shared method notes, sections 2, 3 and 7.1):
// plain loops in double precision, nothing shared with production code. Slow on purpose.
//
// One layer; all matrices row-major, last index fastest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plateau::test {

using Doubles = std::vector<double>;

struct ReferenceShape {
  int n_head = 1;
  int n_head_kv = 1;  // divides n_head
  int head_dim = 1;
  int n_held = 1;  // keys that are ranked
  int n_observed = 0;
  /// The observing rows' own keys follow the held ones and are dropped; without, they are the last
  /// of the held ones.
  bool observers_are_proxies = true;

  int n_keys() const { return n_held + (observers_are_proxies ? n_observed : 0); }
};

enum class ReferencePool { kNone, kAverage, kMax };

/// softmax(q k^T / sqrt(d)), causal among the observing rows, mean over them:
/// q [n_head][n_observed][head_dim], k [n_head_kv][n_keys][head_dim] -> [n_head][n_held].
Doubles reference_observed_attention(const ReferenceShape& shape, std::span<const float> q,
                                     std::span<const float> k);

/// [n_head][n_held] -> [n_head_kv][n_held].
Doubles reference_group(const ReferenceShape& shape, const Doubles& per_head, bool maximum);

/// Along the row of one kv head. Average: zeros beyond the ends count; maximum: they do not.
Doubles reference_pool(const Doubles& scores, ReferencePool pool, int kernel);

/// What the attention form ranks by: group, then pool, [n_head_kv][n_held].
Doubles reference_snapkv(const ReferenceShape& shape, std::span<const float> q,
                         std::span<const float> k, bool group_maximum, ReferencePool pool,
                         int kernel);

/// -cos(k_i, mean of the unit keys), [n_head_kv][n_held]; a zero key has no direction: 0.
Doubles reference_keydiff(const ReferenceShape& shape, std::span<const float> k);

/// -sum over j of cos(k_i, k_j): what KeyDiff is a short form of.
Doubles reference_pairwise(const ReferenceShape& shape, std::span<const float> k);

/// ||v_i||.
Doubles reference_value_norm(const ReferenceShape& shape, std::span<const float> v);

/// (1 - r)(attention + value norm) + r * diversity, r = (n ||mean kh||^2 - 1)/(n - 1).
Doubles reference_mix(const ReferenceShape& shape, std::span<const float> q,
                      std::span<const float> k, std::span<const float> v, ReferencePool pool,
                      int kernel);

}  // namespace plateau::test

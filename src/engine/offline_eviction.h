// Eviction without a model: keys, queries and values come from files, and the policies of
// src/kv/policies score, select and keep them as they do while prefilling. Behind `plateau evict`.
//
// The queries stand for the question: they come after all keys, observe after every block, see
// every held key, and have no columns of their own. Memory is bounded by the held keys of one kv
// head; the arrays themselves are walked through, not loaded.
//
// Relies on every signal of a policy having heads as its last dimension, kv heads or query heads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "arrays/array.h"
#include "plateau/options.h"

namespace plateau::engine {

struct OfflineEviction {
  // Arrays outlive the call. Null: not given.
  const arrays::Array* keys = nullptr;       // rotated, [n_head_kv, T, head_dim]; always needed
  const arrays::Array* queries = nullptr;    // rotated, [n_head, W, head_dim]; W is the window
  const arrays::Array* values = nullptr;     // [n_head_kv, T, head_dim]
  const arrays::Array* positions = nullptr;  // [T, 3]: t, h, w; t < 0: not on a grid

  std::string policy = "snapkv";
  PolicyOptions policy_options;  // window is ignored
  int budget = 0;                // M: keys kept per kv head; "full" does not look at it
  int block = 0;                 // keys per block; 0: all at once
  int n_sinks = 0;               // the first keys, never evicted
  int n_recent = 0;              // the last keys of what has been seen so far, never evicted
  bool want_scores = false;

  int n_threads = 1;
  std::function<bool()> should_cancel = {};
};

struct OfflineEvictionResult {
  std::vector<std::vector<int32_t>> kept;  // per kv head, ascending
  /// Only where asked for. Per kv head and key, as of the last scoring, nullopt for keys that were
  /// no longer held then; all nullopt for "full", which has no scores.
  std::vector<std::vector<std::optional<float>>> scores;
};

/// Errors: kInvalidArgument (an option; shapes that do not fit each other; an array that the policy
/// needs is missing), kUnsupported (element type), kCorrupt (NaN or infinity; values so large that
/// the scores overflow), kResourceExhausted, kCancelled.
OfflineEvictionResult evict_offline(const OfflineEviction& in);

}  // namespace plateau::engine

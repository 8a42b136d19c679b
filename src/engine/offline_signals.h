// The device half of offline eviction: a policy's signals over keys, queries and values from files,
// by graphs of a few heads each, so that memory does not grow with the number of heads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/offline_eviction.h"
#include "kv/policy.h"
#include "model/backend.h"

namespace plateau::engine {

/// Of arrays that have been checked to fit each other.
struct OfflineShape {
  int n_head = 0;  // n_head_kv where there are no queries
  int n_head_kv = 0;
  int n_tokens = 0;
  int n_window = 0;  // 0: no queries
  int head_dim = 0;

  int n_group() const { return n_head / n_head_kv; }
};

/// What a policy computes on the device, and from what.
struct SignalNeeds {
  std::vector<bool> is_per_query_head;  // by signal; the others have one row per kv head
  bool queries = false;
  bool values = false;
};
/// Found out from the policy's graph, so that a new policy needs no entry anywhere.
SignalNeeds signal_needs(const kv::Policy& policy);

using HeldTokens = std::vector<std::vector<int32_t>>;  // per kv head, ascending, equally many

class OfflineSignals {
 public:
  /// All arguments must outlive the object.
  OfflineSignals(const kv::Policy& policy, const SignalNeeds& needs, const OfflineEviction& in,
                 const OfflineShape& shape);

  /// The policy's signals over the held keys, as from one graph of the whole layer.
  /// Errors: kCorrupt (overflow), kResourceExhausted, kCancelled.
  std::vector<std::vector<float>> compute(const HeldTokens& held);

 private:
  struct Graph;
  struct HeadRange;
  std::vector<HeadRange> plan_heads(int64_t n_held) const;
  void set_inputs(const Graph& graph, const HeadRange& heads, const HeldTokens& held) const;
  void gather(ggml_tensor* to, const arrays::Array* from, const HeadRange& heads,
              const HeldTokens& held) const;
  friend SignalNeeds signal_needs(const kv::Policy& policy);

  const kv::Policy& policy_;
  const SignalNeeds& needs_;
  const OfflineEviction& in_;
  const OfflineShape& shape_;
  model::Backends backends_;
  ggml_backend_sched_ptr sched_;
};

/// Refuses infinities and NaN among numbers computed from finite arrays.
void check_overflow(const OfflineEviction& in, std::span<const float> computed);

}  // namespace plateau::engine

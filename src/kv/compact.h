// Moves the rows that stay to the front of a layer's K and V.
// Tested by tests/kv/compact_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/kv_cache.h"

namespace plateau::kv {

/// Per kv head the kept slots, ascending; all heads keep the same number.
using KeptSlots = std::vector<std::vector<int32_t>>;

/// Rows of `arena` [head_dim, n_slot, n_head_kv] (K or V of one layer). Only rows that change their
/// slot are touched. On host buffers rows move in place: kept[i] >= i and both ascend, so a row is
/// never overwritten before it has moved. Quantised rows move as they are.
void compact_in_place(ggml_tensor* arena, const KeptSlots& kept);

/// The same through the backend's copy functions, for buffers that the host cannot address: the
/// span of rows that changes is staged through host memory, one head at a time.
void compact_staged(ggml_tensor* arena, const KeptSlots& kept);

/// Compacts K and V of one layer, whichever way its buffers need.
void compact_layer(KvCache& cache, int il, const KeptSlots& kept);

}  // namespace plateau::kv

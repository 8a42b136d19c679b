// One eviction over all layers: score, select, compact, and the slot map kept true to it.
// Tested by tests/kv/policy_properties_test.cc, over all policies.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kv/compact.h"
#include "kv/kv_cache.h"
#include "kv/policy.h"
#include "kv/slot_map.h"

namespace plateau::kv {

/// The device's part of the scores: per layer, the values of each signal tensor.
using Signals = std::vector<std::vector<std::vector<float>>>;

struct EvictionTimes {
  double score_ms = 0;  // the host's part of it
  double select_ms = 0;
  double compact_ms = 0;
};

/// Keeps `n_keep` tokens per layer and head.
/// Errors: kInternal for NaN scores.
void evict(const Policy& policy, const Signals& signals, int n_head, const TokenTable& table,
           int n_keep, SlotMap& slots, KvCache& cache, EvictionTimes& times);

/// The scores of one layer: [n_held, n_head_kv].
std::vector<float> score_layer(const Policy& policy, std::span<const std::vector<float>> signals,
                               const LayerSlots& layer);

}  // namespace plateau::kv

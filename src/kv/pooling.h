// From attention per query head to scores per kv head: group reduction and smoothing over
// neighbouring tokens. Pure.
// Tested by tests/kv/pooling_test.cc.
#pragma once

#include <span>

#include "kv/policy.h"

namespace plateau::kv {

/// In place, along the slots of one kv head: kernel k, stride 1; average counts the padding as
/// zeros (SnapKV, arXiv:2404.14469, as NVIDIA/kvpress computes it), max ignores it. REQUIRES:
/// kernel odd.
void pool_along_cache(std::span<float> scores, Pool pool, int kernel);

/// In place, over the k x k neighbourhood of each token on its picture's grid, counting the tokens
/// that are still held; tokens without a grid keep their score.
void pool_on_grid(std::span<float> scores, std::span<const TokenInfo> tokens, Pool pool,
                  int kernel);

/// Mean or maximum of the query heads' scores of each group: [n_held, n_head] -> [n_held,
/// n_head_kv].
void reduce_group(std::span<const float> per_head, const LayerSlots& layer,
                  GroupReduction reduction, std::span<float> scores);

/// SnapKV's score from observed attention [n_held, n_head]: group reduction, then pooling per head.
void attention_scores(std::span<const float> attention, const LayerSlots& layer,
                      const PolicyOptions& options, std::span<float> scores);

}  // namespace plateau::kv

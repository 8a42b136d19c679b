// Eviction as the formulas write it: plain loops in double precision over one kv head at a time,
// nothing shared with production code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plateau/options.h"

namespace plateau::test {

struct ReferenceEviction {
  int n_head = 1;
  int n_head_kv = 1;
  int n_tokens = 0;
  int n_window = 0;
  int head_dim = 1;
  // Last index fastest: [n_head_kv][n_tokens][head_dim], [n_head][n_window][head_dim].
  std::vector<float> keys;
  std::vector<float> values;
  std::vector<float> queries;
  std::vector<int32_t> thw;  // [n_tokens][3]; empty: no grid

  std::string policy;
  PolicyOptions options;
  int budget = 0;
  int block = 0;
  int n_sinks = 0;
  int n_recent = 0;
};

/// Scores of the given tokens of one kv head.
std::vector<double> reference_scores(const ReferenceEviction& in, int head,
                                     const std::vector<int32_t>& tokens);

/// The block loop, one kv head after the other: kept tokens, ascending.
std::vector<std::vector<int32_t>> reference_kept(const ReferenceEviction& in);

}  // namespace plateau::test

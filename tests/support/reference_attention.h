// Softmax attention as the textbook writes it: plain loops in double precision, nothing shared with
// production code. Slow on purpose; it is the specification that fast paths are compared with.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plateau::test {

struct AttentionShape {
  int n_head = 1;
  int n_head_kv = 1;  // divides n_head; query head h reads kv head h / (n_head / n_head_kv)
  int n_q = 1;
  int n_kv = 1;
  int head_dim = 1;
  double scale = 1.0;  // usually 1 / sqrt(head_dim)
};

struct AttentionResult {
  std::vector<double> out;      // [n_head][n_q][head_dim], last index fastest
  std::vector<double> weights;  // [n_head][n_q][n_kv], each row sums to 1 (0 where nothing is seen)
};

/// `q` is [n_head][n_q][head_dim], `k` and `v` are [n_head_kv][n_kv][head_dim], last index fastest.
/// `mask` is [n_q][n_kv], nonzero where the query sees the key; empty: every query sees every key.
/// A query that sees nothing yields zeros.
AttentionResult reference_attention(const AttentionShape& shape, std::span<const float> q,
                                    std::span<const float> k, std::span<const float> v,
                                    std::span<const uint8_t> mask = {});

/// The mask of a block of n_q queries that are the last of n_kv tokens in sequence order.
std::vector<uint8_t> causal_mask(int n_q, int n_kv);

}  // namespace plateau::test

#include "support/reference_attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/check.h"

namespace plateau::test {

AttentionResult reference_attention(const AttentionShape& shape, std::span<const float> q,
                                    std::span<const float> k, std::span<const float> v,
                                    std::span<const uint8_t> mask) {
  PLATEAU_CHECK(shape.n_head_kv > 0 && shape.n_head % shape.n_head_kv == 0);
  const size_t n_head = static_cast<size_t>(shape.n_head);
  const size_t n_head_kv = static_cast<size_t>(shape.n_head_kv);
  const size_t n_q = static_cast<size_t>(shape.n_q);
  const size_t n_kv = static_cast<size_t>(shape.n_kv);
  const size_t dim = static_cast<size_t>(shape.head_dim);
  PLATEAU_CHECK(q.size() == n_head * n_q * dim);
  PLATEAU_CHECK(k.size() == n_head_kv * n_kv * dim && v.size() == k.size());
  PLATEAU_CHECK(mask.empty() || mask.size() == n_q * n_kv);

  AttentionResult result;
  result.out.assign(n_head * n_q * dim, 0.0);
  result.weights.assign(n_head * n_q * n_kv, 0.0);
  for (size_t h = 0; h < n_head; ++h) {
    const size_t kv_head = h / (n_head / n_head_kv);
    for (size_t i = 0; i < n_q; ++i) {
      double* weight = &result.weights[(h * n_q + i) * n_kv];
      double highest = -std::numeric_limits<double>::infinity();
      for (size_t j = 0; j < n_kv; ++j) {
        if (!mask.empty() && mask[i * n_kv + j] == 0) continue;
        double dot = 0;
        for (size_t d = 0; d < dim; ++d) {
          dot += double{q[(h * n_q + i) * dim + d]} * double{k[(kv_head * n_kv + j) * dim + d]};
        }
        weight[j] = dot * shape.scale;
        highest = std::max(highest, weight[j]);
      }
      double total = 0;
      for (size_t j = 0; j < n_kv; ++j) {
        if (!mask.empty() && mask[i * n_kv + j] == 0) continue;
        weight[j] = std::exp(weight[j] - highest);
        total += weight[j];
      }
      if (total == 0) continue;
      for (size_t j = 0; j < n_kv; ++j) {
        weight[j] /= total;
        for (size_t d = 0; d < dim; ++d) {
          result.out[(h * n_q + i) * dim + d] +=
              weight[j] * double{v[(kv_head * n_kv + j) * dim + d]};
        }
      }
    }
  }
  return result;
}

std::vector<uint8_t> causal_mask(int n_q, int n_kv) {
  PLATEAU_CHECK(n_q >= 0 && n_q <= n_kv);
  std::vector<uint8_t> mask(static_cast<size_t>(n_q) * static_cast<size_t>(n_kv), 0);
  for (int i = 0; i < n_q; ++i) {
    const int n_seen = n_kv - n_q + i + 1;
    std::fill_n(mask.begin() + std::ptrdiff_t{i} * n_kv, n_seen, uint8_t{1});
  }
  return mask;
}

}  // namespace plateau::test

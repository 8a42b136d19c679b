#include "kv/reference_policies.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace plateau::test {
namespace {

size_t size(int n) { return static_cast<size_t>(n); }

/// Row `index` of `head` in [n_head][n_rows][head_dim].
std::span<const float> row_of(std::span<const float> x, const ReferenceShape& shape, int n_rows,
                              int head, int index) {
  const size_t first = (size(head) * size(n_rows) + size(index)) * size(shape.head_dim);
  return x.subspan(first, size(shape.head_dim));
}

std::span<const float> key(const ReferenceShape& shape, std::span<const float> k, int head, int i) {
  return row_of(k, shape, shape.n_keys(), head, i);
}

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

double norm(std::span<const float> a) { return std::sqrt(dot(a, a)); }

double cosine(std::span<const float> a, std::span<const float> b) {
  const double product = norm(a) * norm(b);
  return product == 0 ? 0 : dot(a, b) / product;
}

/// The mean unit key of one head.
Doubles anchor_of(const ReferenceShape& shape, std::span<const float> k, int head) {
  Doubles anchor(size(shape.head_dim), 0.0);
  for (int i = 0; i < shape.n_held; ++i) {
    const auto row = key(shape, k, head, i);
    const double length = norm(row);
    if (length == 0) continue;
    for (size_t j = 0; j < row.size(); ++j) anchor[j] += row[j] / length / shape.n_held;
  }
  return anchor;
}

double squared(const Doubles& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return sum;
}

double mean_of(const Doubles& x) {
  double sum = 0;
  for (const double value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

/// To [0, 1] by minimum and maximum, then to the given mean; what is constant becomes that mean.
Doubles to_mean(const Doubles& x, double mean) {
  const double low = *std::min_element(x.begin(), x.end());
  const double high = *std::max_element(x.begin(), x.end());
  Doubles result(x.size(), mean);
  if (high == low) return result;
  for (size_t i = 0; i < x.size(); ++i) result[i] = (x[i] - low) / (high - low);
  const double factor = mean / mean_of(result);
  for (double& value : result) value *= factor;
  return result;
}

Doubles part(const Doubles& x, int head, int n) {
  const auto first = x.begin() + std::ptrdiff_t{head} * n;
  return {first, first + n};
}

}  // namespace

Doubles reference_observed_attention(const ReferenceShape& shape, std::span<const float> q,
                                     std::span<const float> k) {
  Doubles result(size(shape.n_head) * size(shape.n_held), 0.0);
  const int n_group = shape.n_head / shape.n_head_kv;
  // The first observing row is the token after this many keys.
  const int n_before = shape.n_keys() - shape.n_observed;
  for (int head = 0; head < shape.n_head; ++head) {
    for (int row = 0; row < shape.n_observed; ++row) {
      const auto query = row_of(q, shape, shape.n_observed, head, row);
      const int n_seen = n_before + row + 1;
      Doubles logits;
      for (int i = 0; i < n_seen; ++i) {
        logits.push_back(dot(query, key(shape, k, head / n_group, i)) /
                         std::sqrt(double(shape.head_dim)));
      }
      const double top = *std::max_element(logits.begin(), logits.end());
      double sum = 0;
      for (double& value : logits) sum += value = std::exp(value - top);
      for (int i = 0; i < std::min(n_seen, shape.n_held); ++i) {
        result[size(head) * size(shape.n_held) + size(i)] +=
            logits[size(i)] / sum / shape.n_observed;
      }
    }
  }
  return result;
}

Doubles reference_group(const ReferenceShape& shape, const Doubles& per_head, bool maximum) {
  const int n_group = shape.n_head / shape.n_head_kv;
  Doubles result;
  for (int head = 0; head < shape.n_head_kv; ++head) {
    for (int i = 0; i < shape.n_held; ++i) {
      double top = 0, sum = 0;  // attention is never negative
      for (int j = 0; j < n_group; ++j) {
        const double x = per_head[size(head * n_group + j) * size(shape.n_held) + size(i)];
        top = std::max(top, x);
        sum += x;
      }
      result.push_back(maximum ? top : sum / n_group);
    }
  }
  return result;
}

Doubles reference_pool(const Doubles& scores, ReferencePool pool, int kernel) {
  if (pool == ReferencePool::kNone) return scores;
  const int n = static_cast<int>(scores.size());
  Doubles result;
  for (int i = 0; i < n; ++i) {
    double sum = 0, top = scores[size(i)];
    for (int j = i - kernel / 2; j <= i + kernel / 2; ++j) {
      if (j < 0 || j >= n) continue;
      sum += scores[size(j)];
      top = std::max(top, scores[size(j)]);
    }
    result.push_back(pool == ReferencePool::kMax ? top : sum / kernel);
  }
  return result;
}

Doubles reference_snapkv(const ReferenceShape& shape, std::span<const float> q,
                         std::span<const float> k, bool group_maximum, ReferencePool pool,
                         int kernel) {
  const Doubles grouped =
      reference_group(shape, reference_observed_attention(shape, q, k), group_maximum);
  Doubles result;
  for (int head = 0; head < shape.n_head_kv; ++head) {
    const Doubles pooled = reference_pool(part(grouped, head, shape.n_held), pool, kernel);
    result.insert(result.end(), pooled.begin(), pooled.end());
  }
  return result;
}

Doubles reference_keydiff(const ReferenceShape& shape, std::span<const float> k) {
  Doubles result;
  for (int head = 0; head < shape.n_head_kv; ++head) {
    const Doubles anchor = anchor_of(shape, k, head);
    const double anchor_length = std::sqrt(squared(anchor));
    for (int i = 0; i < shape.n_held; ++i) {
      const auto row = key(shape, k, head, i);
      double product = 0;
      for (size_t j = 0; j < row.size(); ++j) product += row[j] * anchor[j];
      const double lengths = norm(row) * anchor_length;
      result.push_back(lengths == 0 ? 0 : -product / lengths);
    }
  }
  return result;
}

Doubles reference_pairwise(const ReferenceShape& shape, std::span<const float> k) {
  Doubles result;
  for (int head = 0; head < shape.n_head_kv; ++head) {
    for (int i = 0; i < shape.n_held; ++i) {
      double sum = 0;
      for (int j = 0; j < shape.n_held; ++j) {
        sum += cosine(key(shape, k, head, i), key(shape, k, head, j));
      }
      result.push_back(-sum);
    }
  }
  return result;
}

Doubles reference_value_norm(const ReferenceShape& shape, std::span<const float> v) {
  Doubles result;
  for (int head = 0; head < shape.n_head_kv; ++head) {
    for (int i = 0; i < shape.n_held; ++i) result.push_back(norm(key(shape, v, head, i)));
  }
  return result;
}

Doubles reference_mix(const ReferenceShape& shape, std::span<const float> q,
                      std::span<const float> k, std::span<const float> v, ReferencePool pool,
                      int kernel) {
  const Doubles attention = reference_snapkv(shape, q, k, /*group_maximum=*/false, pool, kernel);
  const Doubles norms = reference_value_norm(shape, v);
  const Doubles diversity = reference_keydiff(shape, k);
  const int n = shape.n_held;
  Doubles result;
  for (int head = 0; head < shape.n_head_kv; ++head) {
    const Doubles of_head = part(attention, head, n);
    const double mean = mean_of(of_head);
    const Doubles scaled_norms = to_mean(part(norms, head, n), mean);
    const Doubles scaled_diversity = to_mean(part(diversity, head, n), mean);
    double r = n < 2 ? 0 : (n * squared(anchor_of(shape, k, head)) - 1) / (n - 1);
    r = std::min(1.0, std::max(0.0, r));
    for (size_t i = 0; i < size(n); ++i) {
      result.push_back((1 - r) * (of_head[i] + scaled_norms[i]) + r * scaled_diversity[i]);
    }
  }
  return result;
}

}  // namespace plateau::test

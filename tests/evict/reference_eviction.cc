#include "evict/reference_eviction.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

namespace plateau::test {
namespace {

using Row = std::vector<double>;

Row row(const std::vector<float>& data, int head, int n_rows, int index, int dim) {
  const auto first = data.begin() + (static_cast<std::ptrdiff_t>(head) * n_rows + index) * dim;
  return Row(first, first + dim);
}

double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Row unit(Row a) {
  const double norm = std::sqrt(dot(a, a));
  for (double& x : a) x = norm > 0 ? x / norm : 0;
  return a;
}

std::vector<double> pooled(const ReferenceEviction& in, const std::vector<double>& scores,
                           const std::vector<int32_t>& tokens) {
  const int radius = in.options.pool_kernel / 2;
  if (in.options.pool == Pool::kNone) return scores;
  const bool on_grid = in.options.pool_axis == PoolAxis::kGrid;
  const auto thw = [&](size_t slot, size_t i) {
    return in.thw[static_cast<size_t>(tokens[slot]) * 3 + i];
  };
  const auto are_neighbours = [&](size_t a, size_t b) {
    if (!on_grid) return std::abs(static_cast<int>(a) - static_cast<int>(b)) <= radius;
    if (thw(a, 0) < 0) return a == b;
    return thw(a, 0) == thw(b, 0) && std::abs(thw(a, 1) - thw(b, 1)) <= radius &&
           std::abs(thw(a, 2) - thw(b, 2)) <= radius;
  };
  std::vector<double> result;
  for (size_t i = 0; i < scores.size(); ++i) {
    double sum = 0;
    double best = scores[i];
    int n = 0;
    for (size_t j = 0; j < scores.size(); ++j) {
      if (!are_neighbours(i, j)) continue;
      sum += scores[j];
      best = std::max(best, scores[j]);
      ++n;
    }
    // On the grid the mean is over who is there; along the cache absent ones count as zeros.
    const double mean = sum / (on_grid ? n : in.options.pool_kernel);
    result.push_back(in.options.pool == Pool::kMax ? best : mean);
  }
  return result;
}

std::vector<double> attention(const ReferenceEviction& in, int head,
                              const std::vector<int32_t>& tokens) {
  const int n_group = in.n_head / in.n_head_kv;
  std::vector<Row> keys;
  for (const int32_t token : tokens) {
    keys.push_back(row(in.keys, head, in.n_tokens, token, in.head_dim));
  }
  std::vector<double> total(tokens.size(), 0);
  for (int g = 0; g < n_group; ++g) {
    std::vector<double> of_query_head(tokens.size(), 0);
    for (int w = 0; w < in.n_window; ++w) {
      const Row q = row(in.queries, head * n_group + g, in.n_window, w, in.head_dim);
      std::vector<double> weights;
      for (const Row& key : keys) weights.push_back(dot(q, key) / std::sqrt(in.head_dim));
      const double top = *std::max_element(weights.begin(), weights.end());
      double sum = 0;
      for (double& x : weights) sum += x = std::exp(x - top);
      for (size_t i = 0; i < tokens.size(); ++i) of_query_head[i] += weights[i] / sum / in.n_window;
    }
    for (size_t i = 0; i < tokens.size(); ++i) {
      total[i] = in.options.group == GroupReduction::kMax ? std::max(total[i], of_query_head[i])
                                                          : total[i] + of_query_head[i] / n_group;
    }
  }
  return pooled(in, total, tokens);
}

Row mean_unit_key(const ReferenceEviction& in, int head, const std::vector<int32_t>& tokens) {
  Row mean(static_cast<size_t>(in.head_dim), 0);
  for (const int32_t token : tokens) {
    const Row key = unit(row(in.keys, head, in.n_tokens, token, in.head_dim));
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += key[i] / static_cast<double>(tokens.size());
  }
  return mean;
}

std::vector<double> key_difference(const ReferenceEviction& in, int head,
                                   const std::vector<int32_t>& tokens) {
  const Row anchor = unit(mean_unit_key(in, head, tokens));
  std::vector<double> scores;
  for (const int32_t token : tokens) {
    scores.push_back(-dot(unit(row(in.keys, head, in.n_tokens, token, in.head_dim)), anchor));
  }
  return scores;
}

std::vector<double> value_norm(const ReferenceEviction& in, int head,
                               const std::vector<int32_t>& tokens) {
  std::vector<double> scores;
  for (const int32_t token : tokens) {
    const Row v = row(in.values, head, in.n_tokens, token, in.head_dim);
    scores.push_back(std::sqrt(dot(v, v)));
  }
  return scores;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double x : values) sum += x;
  return sum / static_cast<double>(values.size());
}

/// Min-max to [0, 1], then scaled to the given mean.
std::vector<double> rescaled(std::vector<double> values, double mean) {
  const double low = *std::min_element(values.begin(), values.end());
  const double high = *std::max_element(values.begin(), values.end());
  if (high == low) return std::vector<double>(values.size(), mean);
  for (double& x : values) x = (x - low) / (high - low);
  const double own = mean_of(values);
  for (double& x : values) x *= mean / own;
  return values;
}

std::vector<double> mix(const ReferenceEviction& in, int head, const std::vector<int32_t>& tokens) {
  std::vector<double> scores = attention(in, head, tokens);
  const double mean = mean_of(scores);
  const std::vector<double> norm = rescaled(value_norm(in, head, tokens), mean);
  const std::vector<double> diversity = rescaled(key_difference(in, head, tokens), mean);
  const Row m = mean_unit_key(in, head, tokens);
  const auto n = static_cast<double>(tokens.size());
  const double r = n < 2 ? 0 : std::clamp((n * dot(m, m) - 1) / (n - 1), 0.0, 1.0);
  for (size_t i = 0; i < scores.size(); ++i) {
    scores[i] = (1 - r) * (scores[i] + norm[i]) + r * diversity[i];
  }
  return scores;
}

uint64_t split_mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

std::vector<int32_t> keep(const ReferenceEviction& in, const std::vector<int32_t>& tokens,
                          const std::vector<double>& scores, int n_seen) {
  std::vector<size_t> order(tokens.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto is_protected = [&](size_t i) {
    return tokens[i] < in.n_sinks || tokens[i] >= n_seen - in.n_recent;
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (is_protected(a) != is_protected(b)) return is_protected(a);
    return scores[a] > scores[b];
  });
  std::vector<int32_t> kept;
  for (size_t i = 0; i < static_cast<size_t>(in.budget); ++i) kept.push_back(tokens[order[i]]);
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace

std::vector<double> reference_scores(const ReferenceEviction& in, int head,
                                     const std::vector<int32_t>& tokens) {
  if (in.policy == "snapkv" || in.policy == "block-attention" ||
      in.policy == "post-prefill-snapkv") {
    return attention(in, head, tokens);
  }
  if (in.policy == "keydiff") return key_difference(in, head, tokens);
  if (in.policy == "value-norm") return value_norm(in, head, tokens);
  if (in.policy == "mix") return mix(in, head, tokens);
  std::vector<double> scores;
  for (const int32_t token : tokens) {
    if (in.policy == "sink-recent") {
      scores.push_back(token);
    } else if (in.policy == "random") {
      const uint64_t stream =
          split_mix(in.options.seed ^ split_mix(static_cast<uint64_t>(head)));  // layer 0
      scores.push_back(static_cast<double>(split_mix(stream ^ static_cast<uint64_t>(token)) >> 40));
    } else {
      throw std::logic_error("no reference for policy " + in.policy);
    }
  }
  return scores;
}

std::vector<std::vector<int32_t>> reference_kept(const ReferenceEviction& in) {
  std::vector<std::vector<int32_t>> kept;
  const int block = in.block == 0 ? in.n_tokens : in.block;
  for (int head = 0; head < in.n_head_kv; ++head) {
    std::vector<int32_t> held;
    int n_seen = 0;
    while (n_seen < in.n_tokens) {
      for (int i = 0; i < block && n_seen < in.n_tokens; ++i) held.push_back(n_seen++);
      const bool may_evict = in.policy != "post-prefill-snapkv" || n_seen == in.n_tokens;
      if (!may_evict || held.size() <= static_cast<size_t>(in.budget)) continue;
      held = keep(in, held, reference_scores(in, head, held), n_seen);
    }
    kept.push_back(held);
  }
  return kept;
}

}  // namespace plateau::test

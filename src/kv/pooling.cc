#include "kv/pooling.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "base/check.h"

namespace plateau::kv {
namespace {

/// Where each held token of one plane sits: slot by grid coordinate, -1 where nothing is held.
struct Plane {
  int32_t h0 = std::numeric_limits<int32_t>::max();
  int32_t w0 = std::numeric_limits<int32_t>::max();
  int32_t h1 = std::numeric_limits<int32_t>::min();
  int32_t w1 = std::numeric_limits<int32_t>::min();
  std::vector<int32_t> slots = {};

  void include(const TokenInfo& token) {
    h0 = std::min(h0, token.h);
    h1 = std::max(h1, token.h);
    w0 = std::min(w0, token.w);
    w1 = std::max(w1, token.w);
  }
  size_t index(int32_t h, int32_t w) const {
    return static_cast<size_t>(h - h0) * static_cast<size_t>(w1 - w0 + 1) +
           static_cast<size_t>(w - w0);
  }
  void allocate() {
    slots.assign(static_cast<size_t>(h1 - h0 + 1) * static_cast<size_t>(w1 - w0 + 1), -1);
  }
};

float pool_window(const Plane& plane, std::span<const float> scores, const TokenInfo& center,
                  Pool pool, int radius) {
  float best = -std::numeric_limits<float>::infinity();
  double sum = 0;
  int n = 0;
  for (int32_t h = std::max(plane.h0, center.h - radius);
       h <= std::min(plane.h1, center.h + radius); ++h) {
    for (int32_t w = std::max(plane.w0, center.w - radius);
         w <= std::min(plane.w1, center.w + radius); ++w) {
      const int32_t slot = plane.slots[plane.index(h, w)];
      if (slot < 0) continue;
      best = std::max(best, scores[static_cast<size_t>(slot)]);
      sum += scores[static_cast<size_t>(slot)];
      ++n;
    }
  }
  return pool == Pool::kMax ? best : static_cast<float>(sum / n);
}

}  // namespace

void pool_along_cache(std::span<float> scores, Pool pool, int kernel) {
  PLATEAU_CHECK(kernel >= 1 && kernel % 2 == 1);
  if (pool == Pool::kNone || kernel == 1) return;
  const std::vector<float> before(scores.begin(), scores.end());
  const auto n = static_cast<std::ptrdiff_t>(before.size());
  const std::ptrdiff_t radius = kernel / 2;
  for (std::ptrdiff_t i = 0; i < n; ++i) {
    const auto first = before.begin() + std::max<std::ptrdiff_t>(0, i - radius);
    const auto last = before.begin() + std::min(n, i + radius + 1);
    if (pool == Pool::kMax) {
      scores[static_cast<size_t>(i)] = *std::max_element(first, last);
    } else {
      double sum = 0;
      for (auto it = first; it != last; ++it) sum += *it;
      scores[static_cast<size_t>(i)] = static_cast<float>(sum / kernel);
    }
  }
}

void pool_on_grid(std::span<float> scores, std::span<const TokenInfo> tokens, Pool pool,
                  int kernel) {
  PLATEAU_CHECK(kernel >= 1 && kernel % 2 == 1 && scores.size() == tokens.size());
  if (pool == Pool::kNone || kernel == 1) return;
  std::map<int32_t, Plane> planes;
  for (size_t slot = 0; slot < tokens.size(); ++slot) {
    if (tokens[slot].plane >= 0) planes[tokens[slot].plane].include(tokens[slot]);
  }
  for (auto& [id, plane] : planes) plane.allocate();
  for (size_t slot = 0; slot < tokens.size(); ++slot) {
    if (tokens[slot].plane < 0) continue;
    Plane& plane = planes[tokens[slot].plane];
    plane.slots[plane.index(tokens[slot].h, tokens[slot].w)] = static_cast<int32_t>(slot);
  }
  const std::vector<float> before(scores.begin(), scores.end());
  for (size_t slot = 0; slot < tokens.size(); ++slot) {
    if (tokens[slot].plane < 0) continue;
    scores[slot] = pool_window(planes[tokens[slot].plane], before, tokens[slot], pool, kernel / 2);
  }
}

void reduce_group(std::span<const float> per_head, const LayerSlots& layer,
                  GroupReduction reduction, std::span<float> scores) {
  const auto n_held = static_cast<size_t>(layer.n_held);
  const auto n_group = static_cast<size_t>(layer.n_head / layer.n_head_kv);
  PLATEAU_CHECK(per_head.size() == n_held * static_cast<size_t>(layer.n_head));
  for (size_t head = 0; head < static_cast<size_t>(layer.n_head_kv); ++head) {
    const float* group = per_head.data() + head * n_group * n_held;
    for (size_t slot = 0; slot < n_held; ++slot) {
      float best = group[slot];
      double sum = group[slot];
      for (size_t i = 1; i < n_group; ++i) {
        best = std::max(best, group[i * n_held + slot]);
        sum += group[i * n_held + slot];
      }
      scores[head * n_held + slot] = reduction == GroupReduction::kMax
                                         ? best
                                         : static_cast<float>(sum / static_cast<double>(n_group));
    }
  }
}

void attention_scores(std::span<const float> attention, const LayerSlots& layer,
                      const PolicyOptions& options, std::span<float> scores) {
  reduce_group(attention, layer, options.group, scores);
  const auto n_held = static_cast<size_t>(layer.n_held);
  for (size_t head = 0; head < static_cast<size_t>(layer.n_head_kv); ++head) {
    const auto of_head = scores.subspan(head * n_held, n_held);
    if (options.pool_axis == PoolAxis::kGrid) {
      pool_on_grid(of_head, layer.info[head], options.pool, options.pool_kernel);
    } else {
      pool_along_cache(of_head, options.pool, options.pool_kernel);
    }
  }
}

}  // namespace plateau::kv

#include "kv/evictor.h"

#include "base/check.h"
#include "base/stopwatch.h"
#include "kv/select.h"

namespace plateau::kv {
namespace {

LayerSlots layer_slots(const SlotMap& slots, int il, int n_head, const TokenTable& table) {
  LayerSlots layer;
  layer.il = il;
  layer.n_head = n_head;
  layer.n_head_kv = slots.n_head_kv();
  layer.n_held = slots.n_held();
  for (int head = 0; head < slots.n_head_kv(); ++head) {
    layer.tokens.push_back(slots.tokens(il, head));
    std::vector<TokenInfo>& info = layer.info.emplace_back();
    info.reserve(layer.tokens.back().size());
    for (const int32_t token : layer.tokens.back()) info.push_back(table.at(token));
  }
  return layer;
}

}  // namespace

std::vector<float> score_layer(const Policy& policy, std::span<const std::vector<float>> signals,
                               const LayerSlots& layer) {
  std::vector<float> scores(static_cast<size_t>(layer.n_held) *
                            static_cast<size_t>(layer.n_head_kv));
  policy.score(layer, signals, scores);
  return scores;
}

void evict(const Policy& policy, const Signals& signals, int n_head, const TokenTable& table,
           int n_keep, SlotMap& slots, KvCache& cache, EvictionTimes& times) {
  PLATEAU_CHECK(signals.size() == static_cast<size_t>(slots.n_layer()));
  const auto n_held = static_cast<size_t>(slots.n_held());
  std::vector<uint8_t> is_protected(n_held);
  // All layers are selected before any is compacted: a score that is refused leaves the cache
  // whole.
  std::vector<KeptSlots> kept(static_cast<size_t>(slots.n_layer()));
  for (int il = 0; il < slots.n_layer(); ++il) {
    const LayerSlots layer = layer_slots(slots, il, n_head, table);
    const Stopwatch scoring;
    const std::vector<float> scores = score_layer(policy, signals[static_cast<size_t>(il)], layer);
    times.score_ms += scoring.ms();

    const Stopwatch selecting;
    for (size_t head = 0; head < layer.tokens.size(); ++head) {
      for (size_t slot = 0; slot < n_held; ++slot) {
        is_protected[slot] = layer.info[head][slot].is_protected;
      }
      kept[static_cast<size_t>(il)].push_back(
          select_kept(std::span(scores).subspan(head * n_held, n_held), is_protected, n_keep));
    }
    times.select_ms += selecting.ms();
  }
  const Stopwatch compacting;
  for (int il = 0; il < slots.n_layer(); ++il) {
    const KeptSlots& of_layer = kept[static_cast<size_t>(il)];
    compact_layer(cache, il, of_layer);
    for (size_t head = 0; head < of_layer.size(); ++head) {
      slots.keep(il, static_cast<int>(head), of_layer[head]);
    }
  }
  slots.finish_keep(n_keep);
  times.compact_ms += compacting.ms();
#ifndef NDEBUG
  slots.check_integrity();
#endif
}

}  // namespace plateau::kv

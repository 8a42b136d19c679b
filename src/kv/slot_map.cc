#include "kv/slot_map.h"

#include "base/check.h"

namespace plateau::kv {

SlotMap::SlotMap(int n_layer, int n_head_kv, int n_slot)
    : n_layer_(n_layer),
      n_head_kv_(n_head_kv),
      n_slot_(n_slot),
      tokens_(static_cast<size_t>(n_layer) * static_cast<size_t>(n_head_kv) *
              static_cast<size_t>(n_slot)) {
  PLATEAU_CHECK(n_layer >= 1 && n_head_kv >= 1 && n_slot >= 1);
}

size_t SlotMap::offset(int il, int head) const {
  PLATEAU_CHECK(il >= 0 && il < n_layer_ && head >= 0 && head < n_head_kv_);
  return (static_cast<size_t>(il) * static_cast<size_t>(n_head_kv_) + static_cast<size_t>(head)) *
         static_cast<size_t>(n_slot_);
}

void SlotMap::append(int n) {
  PLATEAU_CHECK(n >= 0 && n <= n_slot_ - n_held_);
  for (int il = 0; il < n_layer_; ++il) {
    for (int head = 0; head < n_head_kv_; ++head) {
      int32_t* slots = tokens_.data() + offset(il, head) + n_held_;
      for (int i = 0; i < n; ++i) slots[i] = static_cast<int32_t>(n_total_ + i);
    }
  }
  n_held_ += n;
  n_total_ += n;
}

std::span<const int32_t> SlotMap::tokens(int il, int head) const {
  return std::span(tokens_).subspan(offset(il, head), static_cast<size_t>(n_held_));
}

void SlotMap::keep(int il, int head, std::span<const int32_t> kept) {
  int32_t* slots = tokens_.data() + offset(il, head);
  int32_t before = -1;
  for (size_t i = 0; i < kept.size(); ++i) {
    PLATEAU_CHECK(kept[i] > before && kept[i] < n_held_);
    before = kept[i];
    slots[i] = slots[kept[i]];
  }
}

void SlotMap::finish_keep(int n_kept) {
  PLATEAU_CHECK(n_kept >= 0 && n_kept <= n_held_);
  n_held_ = n_kept;
}

void SlotMap::check_integrity() const {
  PLATEAU_CHECK(n_held_ >= 0 && n_held_ <= n_slot_ && n_held_ <= n_total_);
  for (int il = 0; il < n_layer_; ++il) {
    for (int head = 0; head < n_head_kv_; ++head) {
      int64_t before = -1;
      for (const int32_t token : tokens(il, head)) {
        PLATEAU_CHECK(token > before && token < n_total_);
        before = token;
      }
    }
  }
}

}  // namespace plateau::kv

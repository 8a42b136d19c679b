// The key/value tensors of all layers: one dense arena, allocated once.
//
//   K, V per layer: [head_dim, n_slot, n_head_kv], so that the rows of one head are contiguous.
//
// A slot is one row of one (layer, kv head). Which token sits in which slot is not known here
// (see slot_map.h). Not thread-safe.
// Tested by tests/kv/kv_cache_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ggml-cpp.h"
#include "model/language_model.h"
#include "plateau/options.h"

namespace plateau::kv {

/// ggml's GPU flash attention kernels want the attended length in multiples of this; unused rows
/// are masked.
inline constexpr int kAttentionPadding = 256;

constexpr int padded_slots(int n) {
  return (n + kAttentionPadding - 1) / kAttentionPadding * kAttentionPadding;
}

ggml_type to_ggml(CacheType type);

class KvCache {
 public:
  /// Allocates `n_slot` rows (rounded up to kAttentionPadding) per layer and kv head, each layer on
  /// the device of its weights.
  /// For planning the tensors get a place but no memory. `should_cancel` (may be empty) is polled
  /// while the rows are cleared.
  /// Errors: kUnsupported (q8_0 with a head size that is no multiple of 32), kResourceExhausted,
  /// kCancelled.
  KvCache(const model::LanguageModel& model, int n_slot, CacheType type_k, CacheType type_v,
          model::WeightUse use = model::WeightUse::kCompute,
          const std::function<bool()>& should_cancel = {});

  ggml_tensor* k(int il) const { return k_[static_cast<size_t>(il)]; }
  ggml_tensor* v(int il) const { return v_[static_cast<size_t>(il)]; }
  int n_layer() const { return static_cast<int>(k_.size()); }
  int n_slot() const { return n_slot_; }  // a multiple of kAttentionPadding
  int64_t n_bytes() const;
  const std::vector<model::DeviceBytes>& bytes_by_device() const { return bytes_; }

 private:
  int n_slot_ = 0;
  std::vector<model::DeviceBytes> bytes_;
  std::vector<ggml_tensor*> k_;
  std::vector<ggml_tensor*> v_;
  std::vector<ggml_context_ptr> contexts_;
  std::vector<ggml_backend_buffer_ptr> buffers_;
};

}  // namespace plateau::kv

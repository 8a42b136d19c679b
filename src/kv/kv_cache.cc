#include "kv/kv_cache.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/check.h"

namespace plateau::kv {
namespace {

/// Where the cache of layer `il` belongs: beside its weights. Repacked and mapped CPU buffers count
/// as the CPU.
ggml_backend_dev_t device_of_layer(const model::LanguageModel& model, int il) {
  const ggml_tensor* weight = model.weights().get(fmt::format("blk.{}.attn_norm.weight", il));
  ggml_backend_dev_t device =
      ggml_backend_buft_get_device(ggml_backend_buffer_get_type(weight->buffer));
  return device != nullptr ? device : model::Device::cpu().handle();
}

void check_type(const model::ModelConfig& config, ggml_type type) {
  const int64_t group = ggml_blck_size(type);
  if (config.head_dim % group != 0) {
    throw_error(
        ErrorCode::kUnsupported,
        "[cache type] expected a head size that is a multiple of {} for {}, got {}; try f16", group,
        ggml_type_name(type), config.head_dim);
  }
}

void clear(ggml_backend_buffer_t buffer, const std::function<bool()>& should_cancel) {
  if (!ggml_backend_buffer_is_host(buffer)) {
    ggml_backend_buffer_clear(buffer, 0);
    return;
  }
  constexpr size_t kStep = size_t{64} << 20;  // that touching gigabytes can be interrupted
  auto* bytes = static_cast<uint8_t*>(ggml_backend_buffer_get_base(buffer));
  const size_t n_bytes = ggml_backend_buffer_get_size(buffer);
  for (size_t done = 0; done < n_bytes; done += kStep) {
    if (should_cancel && should_cancel()) throw_error(ErrorCode::kCancelled, "interrupted");
    std::memset(bytes + done, 0, std::min(kStep, n_bytes - done));
  }
}

}  // namespace

ggml_type to_ggml(CacheType type) {
  switch (type) {
    case CacheType::kF16:
      return GGML_TYPE_F16;
    case CacheType::kQ8_0:
      return GGML_TYPE_Q8_0;
    case CacheType::kF32:
      return GGML_TYPE_F32;
  }
  return GGML_TYPE_F16;
}

KvCache::KvCache(const model::LanguageModel& model, int n_slot, CacheType type_k, CacheType type_v,
                 model::WeightUse use, const std::function<bool()>& should_cancel)
    : n_slot_(padded_slots(n_slot)) {
  const model::ModelConfig& config = model.config();
  PLATEAU_CHECK(n_slot >= 1 && n_slot <= INT32_MAX - kAttentionPadding);
  check_type(config, to_ggml(type_k));
  check_type(config, to_ggml(type_v));

  std::map<ggml_backend_dev_t, ggml_context*> contexts;
  for (int il = 0; il < config.n_layer; ++il) {
    ggml_context*& context = contexts[device_of_layer(model, il)];
    if (context == nullptr) {
      context = ggml_init({ggml_tensor_overhead() * (2 * static_cast<size_t>(config.n_layer) + 1),
                           /*mem_buffer=*/nullptr, /*no_alloc=*/true});
      PLATEAU_CHECK(context != nullptr);
      contexts_.emplace_back(context);
    }
    const auto new_tensor = [&](CacheType type, const char* name) {
      ggml_tensor* tensor =
          ggml_new_tensor_3d(context, to_ggml(type), config.head_dim, n_slot_, config.n_head_kv);
      ggml_format_name(tensor, "%s_l%d", name, il);
      return tensor;
    };
    k_.push_back(new_tensor(type_k, "cache_k"));
    v_.push_back(new_tensor(type_v, "cache_v"));
  }
  for (const auto& [device, context] : contexts) {
    const ggml_backend_buffer_type_t type = ggml_backend_dev_buffer_type(device);
    bytes_.push_back(
        {ggml_backend_dev_name(device),
         static_cast<int64_t>(ggml_backend_alloc_ctx_tensors_from_buft_size(context, type))});
    if (use == model::WeightUse::kPlanning) {
      buffers_.push_back(model::place_without_memory(context, type));
      continue;
    }
    ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors_from_buft(context, type));
    if (!buffer) {
      throw_error(
          ErrorCode::kResourceExhausted,
          "[kv cache] expected {} MiB for {} tokens, {} has less; try a smaller --kv-budget "
          "or fewer --max-tiles",
          (config.kv_bytes_per_token(to_ggml(type_k), to_ggml(type_v)) * n_slot_) >> 20, n_slot_,
          ggml_backend_dev_name(device));
    }
    // Masked slots are read too, and NaN * 0 is NaN.
    clear(buffer.get(), should_cancel);
    buffers_.push_back(std::move(buffer));
  }
}

int64_t KvCache::n_bytes() const {
  int64_t total = 0;
  for (const model::DeviceBytes& device : bytes_) total += device.bytes;
  return total;
}

}  // namespace plateau::kv

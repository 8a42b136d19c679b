#include "model/vision_config.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/check.h"
#include "model/tensor_check.h"

namespace plateau::model {
namespace {

constexpr int64_t kMaxSide = 4096;
constexpr int64_t kMaxWidth = 1 << 16;
constexpr int64_t kMaxLayers = 256;

std::array<float, 3> read_channels(const GgufFile& file, const std::string& key, bool positive) {
  const auto values = file.find_float_array(key);
  if (!values || values->size() != 3) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected key {} to hold 3 numbers, got {}", file.path(),
                key, values ? values->size() : 0);
  }
  for (const float value : *values) {
    if (!std::isfinite(value) || (positive && value <= 0)) {
      throw_error(ErrorCode::kCorrupt, "[{}] expected key {} to hold {} numbers, got {}",
                  file.path(), key, positive ? "positive" : "finite", value);
    }
  }
  return {(*values)[0], (*values)[1], (*values)[2]};
}

/// Whether any layer has this part. What one layer has, all must have: a hole is damage.
bool any_layer_has(const GgufFile& file, std::string_view part) {
  return std::any_of(file.tensors().begin(), file.tensors().end(), [&](const TensorInfo& tensor) {
    return tensor.name.starts_with("v.blk.") && tensor.name.ends_with(fmt::format(".{}", part));
  });
}

void check_tensors(const GgufFile& file, const VisionConfig& config) {
  const int64_t n_embd = config.n_embd;
  const int64_t merged = n_embd * config.scale_factor * config.scale_factor;
  const int64_t n_out = config.n_embd_out;
  const bool qkv_bias = any_layer_has(file, "attn_q.bias") || any_layer_has(file, "attn_k.bias") ||
                        any_layer_has(file, "attn_v.bias");
  const bool layer_scale = any_layer_has(file, "ls1.weight") || any_layer_has(file, "ls2.weight");
  TensorCheck check(file);
  check.kernel("v.patch_embd.weight", {config.patch_size, config.patch_size, 3, n_embd});
  check.f32("v.patch_embd.bias", {n_embd});
  check.f32("v.class_embd", {n_embd});
  check.f32("v.position_embd.weight", {n_embd, config.n_patches() + 1});
  for (int il = 0; il < config.n_layer; ++il) {
    const auto name = [&](const std::string& part) { return fmt::format("v.blk.{}.{}", il, part); };
    for (const std::string part : {"attn_q", "attn_k", "attn_v"}) {
      check.matrix(name(part + ".weight"), {n_embd, n_embd});
      if (qkv_bias) check.f32(name(part + ".bias"), {n_embd});
    }
    check.matrix(name("attn_out.weight"), {n_embd, n_embd});
    check.f32(name("attn_out.bias"), {n_embd});
    for (const std::string part : {"ln1", "ln2"}) {
      check.f32(name(part + ".weight"), {n_embd});
      if (!config.rms_norm) check.f32(name(part + ".bias"), {n_embd});
    }
    if (config.qk_norm) {
      check.f32(name("attn_q_norm.weight"), {n_embd});
      check.f32(name("attn_k_norm.weight"), {n_embd});
    }
    if (layer_scale) {
      check.f32(name("ls1.weight"), {n_embd});
      check.f32(name("ls2.weight"), {n_embd});
    }
    check.matrix(name("ffn_up.weight"), {n_embd, config.n_ff});
    check.f32(name("ffn_up.bias"), {config.n_ff});
    check.matrix(name("ffn_down.weight"), {config.n_ff, n_embd});
    check.f32(name("ffn_down.bias"), {n_embd});
  }
  check.f32("mm.model.mlp.0.weight", {merged});
  check.f32("mm.model.mlp.0.bias", {merged});
  check.matrix("mm.model.mlp.1.weight", {merged, n_out});
  check.f32("mm.model.mlp.1.bias", {n_out});
  check.matrix("mm.model.mlp.3.weight", {n_out, n_out});
  check.f32("mm.model.mlp.3.bias", {n_out});
  check.refuse_others();  // v.pre_ln, v.post_ln, ...: other towers have them
}

}  // namespace

VisionConfig read_vision_config(const GgufFile& file) {
  const std::string arch = file.get_string("general.architecture");
  if (arch != "clip") {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected a vision projector (general.architecture clip), got {}; try passing "
                "it as -m",
                file.path(), arch);
  }
  if (!file.find_bool("clip.has_vision_encoder").value_or(false)) {
    throw_error(ErrorCode::kUnsupported, "[{}] expected a vision encoder, the file has none",
                file.path());
  }
  VisionConfig config;
  config.projector_type =
      file.find_string("clip.projector_type")
          .value_or(file.find_string("clip.vision.projector_type").value_or(""));
  if (config.projector_type != "internvl") {
    throw_error(ErrorCode::kUnsupported, "[{}] expected clip.projector_type internvl, got {}",
                file.path(), config.projector_type.empty() ? "none" : config.projector_type);
  }
  const bool gelu = file.find_bool("clip.use_gelu").value_or(false);
  const bool silu = file.find_bool("clip.use_silu").value_or(false);
  if (!gelu || silu) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected clip.use_gelu true and no clip.use_silu, got {} and {}", file.path(),
                gelu, silu);
  }
  config.name = file.find_string("general.name").value_or("");

  const std::string prefix = "clip.vision.";
  const auto get = [&](const char* key, int64_t max) {
    return static_cast<int>(file.get_int(prefix + key, 1, max));
  };
  config.tile_size = get("image_size", kMaxSide);
  config.patch_size = get("patch_size", kMaxSide);
  config.n_embd = get("embedding_length", kMaxWidth);
  config.n_layer = get("block_count", kMaxLayers);
  config.n_head = get("attention.head_count", config.n_embd);
  config.n_ff = get("feed_forward_length", kMaxWidth);
  config.scale_factor = get("projector.scale_factor", 16);
  config.min_tiles =
      static_cast<int>(file.find_int(prefix + "preproc_min_tiles", 1, 1 << 20).value_or(1));
  config.max_tiles =
      static_cast<int>(file.find_int(prefix + "preproc_max_tiles", 1, 1 << 20).value_or(12));
  if (config.min_tiles > config.max_tiles) {
    throw_error(ErrorCode::kCorrupt,
                "[{}] expected {}preproc_min_tiles to be at most preproc_max_tiles {}, got {}",
                file.path(), prefix, config.max_tiles, config.min_tiles);
  }
  if (config.tile_size % (config.patch_size * config.scale_factor) != 0) {
    throw_error(ErrorCode::kCorrupt,
                "[{}] expected clip.vision.image_size to be a multiple of patch_size * "
                "projector.scale_factor = {}, got {}",
                file.path(), config.patch_size * config.scale_factor, config.tile_size);
  }
  const std::string kv_key = prefix + "attention.head_count_kv";
  const int64_t n_head_kv = file.find_int(kv_key, 0, kMaxWidth).value_or(config.n_head);
  if (n_head_kv != config.n_head) {
    throw_error(ErrorCode::kUnsupported, "[{}] expected key {} to be {}, got {}", file.path(),
                kv_key, config.n_head, n_head_kv);
  }
  if (config.n_embd % config.n_head != 0) {
    throw_error(ErrorCode::kCorrupt,
                "[{}] expected clip.vision.attention.head_count to divide {}, got {}", file.path(),
                config.n_embd, config.n_head);
  }
  const auto eps = static_cast<float>(file.get_float(prefix + "attention.layer_norm_epsilon"));
  if (!std::isfinite(eps) || eps <= 0) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected a positive layer_norm_epsilon, got {}",
                file.path(), eps);
  }
  config.norm_eps = eps;
  config.image_mean = read_channels(file, prefix + "image_mean", /*positive=*/false);
  config.image_std = read_channels(file, prefix + "image_std", /*positive=*/true);

  config.rms_norm = !any_layer_has(file, "ln1.bias") && !any_layer_has(file, "ln2.bias");
  config.qk_norm =
      any_layer_has(file, "attn_q_norm.weight") || any_layer_has(file, "attn_k_norm.weight");
  if (config.rms_norm != config.qk_norm) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected norms with bias (v.blk.*.ln1.bias), or without bias and with "
                "v.blk.*.attn_q_norm.weight, got {}",
                file.path(), config.rms_norm ? "neither" : "both");
  }
  const TensorInfo* projector = file.find_tensor("mm.model.mlp.3.weight");
  if (projector == nullptr) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected tensor mm.model.mlp.3.weight, found none",
                file.path());
  }
  if (projector->ne[1] < 1 || projector->ne[1] > kMaxWidth) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected 1 to {} rows in mm.model.mlp.3.weight, got {}",
                file.path(), kMaxWidth, projector->ne[1]);
  }
  config.n_embd_out = static_cast<int>(projector->ne[1]);
  check_tensors(file, config);
  return config;
}

}  // namespace plateau::model

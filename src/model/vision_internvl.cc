// Tested by tests/model/vision_config_test.cc.
#include "base/check.h"
#include "model/tensor_check.h"
#include "model/vision_family.h"

namespace plateau::model {
namespace {

InternVlVision read_keys(const GgufFile& file, const VisionConfig& config) {
  const std::string prefix = "clip.vision.";
  InternVlVision vision;
  vision.tile_size = vision_int(file, "image_size", kMaxVisionSide);
  vision.scale_factor = vision_int(file, "projector.scale_factor", 16);
  vision.min_tiles =
      static_cast<int>(file.find_int(prefix + "preproc_min_tiles", 1, 1 << 20).value_or(1));
  vision.max_tiles =
      static_cast<int>(file.find_int(prefix + "preproc_max_tiles", 1, 1 << 20).value_or(12));
  if (vision.min_tiles > vision.max_tiles) {
    throw_error(ErrorCode::kCorrupt,
                "[{}] expected {}preproc_min_tiles to be at most preproc_max_tiles {}, got {}",
                file.path(), prefix, vision.max_tiles, vision.min_tiles);
  }
  if (vision.tile_size % (config.patch_size * vision.scale_factor) != 0) {
    throw_error(ErrorCode::kCorrupt,
                "[{}] expected clip.vision.image_size to be a multiple of patch_size * "
                "projector.scale_factor = {}, got {}",
                file.path(), config.patch_size * vision.scale_factor, vision.tile_size);
  }
  vision.rms_norm = !any_layer_has(file, "ln1.bias") && !any_layer_has(file, "ln2.bias");
  vision.qk_norm =
      any_layer_has(file, "attn_q_norm.weight") || any_layer_has(file, "attn_k_norm.weight");
  if (vision.rms_norm != vision.qk_norm) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected norms with bias (v.blk.*.ln1.bias), or without bias and with "
                "v.blk.*.attn_q_norm.weight, got {}",
                file.path(), vision.rms_norm ? "neither" : "both");
  }
  return vision;
}

void check_layer(const VisionConfig& config, bool qkv_bias, bool layer_scale,
                 const std::string& prefix, TensorCheck& check) {
  const int64_t n_embd = config.n_embd;
  for (const std::string part : {"attn_q", "attn_k", "attn_v"}) {
    check.matrix(prefix + part + ".weight", {n_embd, n_embd});
    if (qkv_bias) check.f32(prefix + part + ".bias", {n_embd});
  }
  check.matrix(prefix + "attn_out.weight", {n_embd, n_embd});
  check.f32(prefix + "attn_out.bias", {n_embd});
  for (const std::string part : {"ln1", "ln2"}) {
    check.f32(prefix + part + ".weight", {n_embd});
    if (!config.internvl().rms_norm) check.f32(prefix + part + ".bias", {n_embd});
  }
  if (config.internvl().qk_norm) {
    check.f32(prefix + "attn_q_norm.weight", {n_embd});
    check.f32(prefix + "attn_k_norm.weight", {n_embd});
  }
  if (layer_scale) {
    check.f32(prefix + "ls1.weight", {n_embd});
    check.f32(prefix + "ls2.weight", {n_embd});
  }
  check.matrix(prefix + "ffn_up.weight", {n_embd, config.n_ff});
  check.f32(prefix + "ffn_up.bias", {config.n_ff});
  check.matrix(prefix + "ffn_down.weight", {config.n_ff, n_embd});
  check.f32(prefix + "ffn_down.bias", {n_embd});
}

void check_tensors(const GgufFile& file, const VisionConfig& config) {
  const int64_t n_embd = config.n_embd;
  const int scale = config.internvl().scale_factor;
  const int64_t merged = n_embd * scale * scale;
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
    check_layer(config, qkv_bias, layer_scale, fmt::format("v.blk.{}.", il), check);
  }
  check.f32("mm.model.mlp.0.weight", {merged});
  check.f32("mm.model.mlp.0.bias", {merged});
  check.matrix("mm.model.mlp.1.weight", {merged, n_out});
  check.f32("mm.model.mlp.1.bias", {n_out});
  check.matrix("mm.model.mlp.3.weight", {n_out, n_out});
  check.f32("mm.model.mlp.3.bias", {n_out});
  check.refuse_others();
}

}  // namespace

void read_internvl(const GgufFile& file, VisionConfig& config) {
  require_activation(file, Activation::kGelu);
  config.family = read_keys(file, config);
  config.n_embd_out = read_n_embd_out(file, "mm.model.mlp.3.weight");
  check_tensors(file, config);
}

}  // namespace plateau::model

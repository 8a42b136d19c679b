#include "model/vision_config.h"

#include <cmath>

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

void check_tensors(const GgufFile& file, const VisionConfig& config) {
  const int64_t n_embd = config.n_embd;
  const int64_t merged = n_embd * config.scale_factor * config.scale_factor;
  const int64_t n_out = config.n_embd_out;
  require_kernel(file, "v.patch_embd.weight", {config.patch_size, config.patch_size, 3, n_embd});
  require_f32(file, "v.patch_embd.bias", {n_embd});
  require_f32(file, "v.class_embd", {n_embd});
  require_f32(file, "v.position_embd.weight", {n_embd, config.n_patches() + 1});
  for (int il = 0; il < config.n_layer; ++il) {
    const auto name = [&](const std::string& part) { return fmt::format("v.blk.{}.{}", il, part); };
    const auto f32_if_present = [&](const std::string& part, int64_t n) {
      if (file.find_tensor(name(part)) != nullptr) require_f32(file, name(part), {n});
    };
    for (const std::string part : {"attn_q", "attn_k", "attn_v", "attn_out"}) {
      require_matrix(file, name(part + ".weight"), {n_embd, n_embd});
      f32_if_present(part + ".bias", n_embd);
    }
    for (const std::string part : {"ln1", "ln2"}) {
      require_f32(file, name(part + ".weight"), {n_embd});
      if (!config.rms_norm) require_f32(file, name(part + ".bias"), {n_embd});
      f32_if_present(part + ".bias", n_embd);
    }
    if (config.qk_norm) {
      for (const std::string part : {"attn_q_norm", "attn_k_norm"}) {
        require_f32(file, name(part + ".weight"), {n_embd});
        f32_if_present(part + ".bias", n_embd);
      }
    }
    f32_if_present("ls1.weight", n_embd);
    f32_if_present("ls2.weight", n_embd);
    require_matrix(file, name("ffn_up.weight"), {n_embd, config.n_ff});
    require_f32(file, name("ffn_up.bias"), {config.n_ff});
    require_matrix(file, name("ffn_down.weight"), {config.n_ff, n_embd});
    require_f32(file, name("ffn_down.bias"), {n_embd});
  }
  require_f32(file, "mm.model.mlp.0.weight", {merged});
  require_f32(file, "mm.model.mlp.0.bias", {merged});
  require_matrix(file, "mm.model.mlp.1.weight", {merged, n_out});
  require_f32(file, "mm.model.mlp.1.bias", {n_out});
  require_matrix(file, "mm.model.mlp.3.weight", {n_out, n_out});
  require_f32(file, "mm.model.mlp.3.bias", {n_out});
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
  if (config.tile_size % (config.patch_size * config.scale_factor) != 0) {
    throw_error(ErrorCode::kCorrupt,
                "[{}] expected clip.vision.image_size to be a multiple of patch_size * "
                "projector.scale_factor = {}, got {}",
                file.path(), config.patch_size * config.scale_factor, config.tile_size);
  }
  if (config.n_embd % config.n_head != 0) {
    throw_error(ErrorCode::kCorrupt,
                "[{}] expected clip.vision.attention.head_count to divide {}, got {}", file.path(),
                config.n_embd, config.n_head);
  }
  const double eps = file.get_float(prefix + "attention.layer_norm_epsilon");
  if (!std::isfinite(eps) || eps <= 0) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected a positive layer_norm_epsilon, got {}",
                file.path(), eps);
  }
  config.norm_eps = static_cast<float>(eps);
  config.image_mean = read_channels(file, prefix + "image_mean", /*positive=*/false);
  config.image_std = read_channels(file, prefix + "image_std", /*positive=*/true);

  config.rms_norm = file.find_tensor("v.blk.0.ln1.bias") == nullptr;
  config.qk_norm = file.find_tensor("v.blk.0.attn_q_norm.weight") != nullptr;
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

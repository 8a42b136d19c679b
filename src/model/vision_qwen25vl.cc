// Key and tensor names are those of llama.cpp's converter. Tested by
// tests/model/qwen25vl_config_test.cc.
#include "base/check.h"
#include "model/tensor_check.h"
#include "model/vision_family.h"

namespace plateau::model {
namespace {

// What the published preprocessor says, used where the file says nothing.
constexpr int64_t kDefaultMinPixels = 56 * 56;
constexpr int64_t kDefaultMaxPixels = 12'845'056;
constexpr int64_t kDefaultWindow = 112;  // pixels
constexpr int64_t kMaxPixels = int64_t{1} << 40;
constexpr int64_t kMaxWindowTokens = 16;
// ggml's flash attention sums in f16 for other head widths, too coarse for a long picture.
constexpr int kHeadDimMultiple = 16;

Qwen25VlVision read_keys(const GgufFile& file, const VisionConfig& config) {
  Qwen25VlVision vision;
  const int64_t merge = file.find_int("clip.vision.spatial_merge_size", 1, 64).value_or(2);
  if (merge != 2) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected key clip.vision.spatial_merge_size to be 2, got {}", file.path(),
                merge);
  }
  vision.merge = static_cast<int>(merge);
  const int64_t window =
      file.find_int("clip.vision.window_size", 1, kMaxVisionSide).value_or(kDefaultWindow);
  const int64_t token_size = merge * config.patch_size;
  if (window % token_size != 0 || window / token_size > kMaxWindowTokens) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected key clip.vision.window_size to be 1 to {} times patch_size * "
                "spatial_merge_size = {}, got {}",
                file.path(), kMaxWindowTokens, token_size, window);
  }
  vision.window_tokens = static_cast<int>(window / token_size);
  vision.full_every = static_cast<int>(file.get_int("clip.vision.n_wa_pattern", 0, 256));
  vision.min_pixels =
      file.find_int("clip.vision.image_min_pixels", 1, kMaxPixels).value_or(kDefaultMinPixels);
  vision.max_pixels =
      file.find_int("clip.vision.image_max_pixels", 1, kMaxPixels).value_or(kDefaultMaxPixels);
  if (vision.min_pixels > vision.max_pixels) {
    throw_error(ErrorCode::kCorrupt,
                "[{}] expected clip.vision.image_min_pixels to be at most "
                "clip.vision.image_max_pixels {}, got {}",
                file.path(), vision.max_pixels, vision.min_pixels);
  }
  return vision;
}

void check_layer(const VisionConfig& config, const std::string& prefix, TensorCheck& check) {
  const int64_t n_embd = config.n_embd;
  const auto linear = [&](const std::string& part, int64_t n_in, int64_t n_out) {
    check.matrix(prefix + part + ".weight", {n_in, n_out});
    check.f32(prefix + part + ".bias", {n_out});
  };
  check.f32(prefix + "ln1.weight", {n_embd});
  check.f32(prefix + "ln2.weight", {n_embd});
  for (const char* part : {"attn_q", "attn_k", "attn_v", "attn_out"}) linear(part, n_embd, n_embd);
  linear("ffn_gate", n_embd, config.n_ff);
  linear("ffn_up", n_embd, config.n_ff);
  linear("ffn_down", config.n_ff, n_embd);
}

void check_tensors(const GgufFile& file, const VisionConfig& config) {
  const int64_t n_embd = config.n_embd;
  const int64_t merged = n_embd * config.qwen25vl().merge * config.qwen25vl().merge;
  TensorCheck check(file);
  // One kernel for each of the two frames that make a slice.
  for (const char* name : {"v.patch_embd.weight", "v.patch_embd.weight.1"}) {
    check.kernel(name, {config.patch_size, config.patch_size, 3, n_embd});
  }
  for (int il = 0; il < config.n_layer; ++il) {
    check_layer(config, fmt::format("v.blk.{}.", il), check);
  }
  check.f32("v.post_ln.weight", {n_embd});
  check.matrix("mm.0.weight", {merged, merged});
  check.f32("mm.0.bias", {merged});
  check.matrix("mm.2.weight", {merged, config.n_embd_out});
  check.f32("mm.2.bias", {config.n_embd_out});
  check.refuse_others();
}

}  // namespace

void read_qwen25vl(const GgufFile& file, VisionConfig& config) {
  require_activation(file, Activation::kSilu);
  if (config.head_dim() % kHeadDimMultiple != 0) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected clip.vision.attention.head_count to make heads whose width is a "
                "multiple of {}, got {} / {}",
                file.path(), kHeadDimMultiple, config.n_embd, config.n_head);
  }
  config.family = read_keys(file, config);
  config.n_embd_out = read_n_embd_out(file, "mm.2.weight");
  check_tensors(file, config);
}

}  // namespace plateau::model

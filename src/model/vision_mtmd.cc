// Projectors that llama.cpp's library runs. It asserts what it does not expect, which ends the
// process, so everything that it reads of such a file is checked here first: the type of each key,
// the shape of each tensor, and that there is no other tensor that it would find.
// Tested by tests/model/mtmd_config_test.cc.
#include <algorithm>
#include <string>
#include <string_view>

#include "base/check.h"
#include "model/tensor_check.h"
#include "model/vision_family.h"

namespace plateau::model {
namespace {

// The library's graphs hold 8192 nodes, some 31 for each layer.
constexpr int kMaxLayers = 192;
constexpr int kMaxGridSizes = 256;
// More chunks along a side are damage: published files have up to 6.
constexpr int kMaxChunksPerSide = 64;

/// The tokens of one picture see each other, also later ones: blocks could not cut them.
constexpr std::string_view kNonCausal[] = {"gemma3", "gemma4v", "gemma4uv", "deepseek4v"};
constexpr std::string_view kAudio[] = {
    "ultravox",       "qwen2a",           "qwen3a",        "glma",
    "voxtral",        "meralion",         "musicflamingo", "lfm2a",
    "gemma3na",       "gemma4a",          "gemma4ua",      "dots3note_a",
    "granite_speech", "mimo_audio",       "parakeet",      "qwen3tts_spkenc",
    "qwen3tts_gen",   "pockettts_spkenc", "pockettts_gen"};

template <size_t n>
bool contains(const std::string_view (&list)[n], std::string_view value) {
  return std::find(std::begin(list), std::end(list), value) != std::end(list);
}

/// Types of the keys that the library reads for these towers.
void check_key_types(const GgufFile& file) {
  for (const char* key : {"general.name", "general.description", "clip.projector_type",
                          "clip.vision.projector_type", "clip.vision.mm_patch_merge_type"}) {
    file.require_type(key, GGUF_TYPE_STRING);
  }
  for (const char* key : {"clip.has_vision_encoder", "clip.has_audio_encoder",
                          "clip.has_gen_audio_encoder", "clip.use_gelu", "clip.use_silu"}) {
    file.require_type(key, GGUF_TYPE_BOOL);
  }
  for (const char* key :
       {"embedding_length", "feed_forward_length", "block_count", "projection_dim", "image_size",
        "patch_size", "attention.head_count", "attention.head_count_kv", "attention.head_dim",
        "projector.scale_factor", "preproc_image_size"}) {
    file.require_type(std::string("clip.vision.") + key, GGUF_TYPE_UINT32);
  }
  file.require_type("clip.vision.attention.layer_norm_epsilon", GGUF_TYPE_FLOAT32);
  file.require_type("clip.minicpmv_version", GGUF_TYPE_INT32);
  file.require_type("clip.minicpmv_query_num", GGUF_TYPE_UINT32);
}

/// Keys that change the graph, with the only value that is supported.
void check_keys(const GgufFile& file, const VisionConfig& config) {
  check_key_types(file);
  for (const char* key : {"clip.has_audio_encoder", "clip.has_gen_audio_encoder"}) {
    if (file.find_bool(key).value_or(false)) {
      throw_error(
          ErrorCode::kUnsupported,
          "[{}] expected a projector for pictures only, got one with {}; try a file without "
          "sound",
          file.path(), key);
    }
  }
  if (file.has("clip.vision.feature_layer")) {
    throw_error(
        ErrorCode::kUnsupported,
        "[{}] expected a tower whose last layers are projected, got clip.vision.feature_layer",
        file.path());
  }
  if (file.find_bool("clip.use_gelu").value_or(false) &&
      file.find_bool("clip.use_silu").value_or(false)) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected one activation, got clip.use_gelu and use_silu",
                file.path());
  }
  file.get_int("clip.vision.projection_dim", 0, kMaxVisionWidth);
  if (file.find_int("clip.vision.attention.head_dim", 0, kMaxVisionWidth)
          .value_or(config.head_dim()) != config.head_dim()) {
    throw_error(
        ErrorCode::kUnsupported,
        "[{}] expected clip.vision.attention.head_dim to be width / heads = {}, got another",
        file.path(), config.head_dim());
  }
  if (config.n_layer > kMaxLayers) {
    throw_error(ErrorCode::kUnsupported, "[{}] expected at most {} layers, got {}", file.path(),
                kMaxLayers, config.n_layer);
  }
}

MtmdVision read_chunk(const GgufFile& file, const VisionConfig& config, int merge) {
  MtmdVision vision;
  vision.chunk_size = vision_int(file, "image_size", kMaxVisionSide);
  vision.merge = merge;
  if (vision.chunk_size % (config.patch_size * merge) != 0) {
    throw_error(ErrorCode::kCorrupt,
                "[{}] expected clip.vision.image_size to be a multiple of {}, got {}", file.path(),
                config.patch_size * merge, vision.chunk_size);
  }
  return vision;
}

void f32_if_present(const GgufFile& file, const std::string& name, const std::vector<int64_t>& ne,
                    TensorCheck& check) {
  if (file.find_tensor(name) != nullptr) check.f32(name, ne);
}

/// A norm's weight and bias, or neither.
void check_optional_norm(const GgufFile& file, const std::string& name, int64_t n,
                         TensorCheck& check) {
  if (file.find_tensor(name + ".weight") == nullptr &&
      file.find_tensor(name + ".bias") == nullptr) {
    return;
  }
  check.f32(name + ".weight", {n});
  check.f32(name + ".bias", {n});
}

/// Older files have the names of ffn_up and ffn_down swapped; the library tells it by the shape, of
/// some projectors.
enum class FfnNames { kPublished, kMaySwap };

void check_layer(const GgufFile& file, const VisionConfig& config, const std::string& prefix,
                 FfnNames names, TensorCheck& check) {
  const int64_t n_embd = config.n_embd;
  for (const std::string part : {"attn_q", "attn_k", "attn_v", "attn_out"}) {
    check.matrix(prefix + part + ".weight", {n_embd, n_embd});
    f32_if_present(file, prefix + part + ".bias", {n_embd}, check);
  }
  for (const std::string part : {"ln1", "ln2"}) {
    check.f32(prefix + part + ".weight", {n_embd});
    f32_if_present(file, prefix + part + ".bias", {n_embd}, check);
  }
  const TensorInfo* ffn_down = file.find_tensor(prefix + "ffn_down.weight");
  const bool is_swapped =
      names == FfnNames::kMaySwap && ffn_down != nullptr && ffn_down->ne[0] == n_embd;
  const std::string up = prefix + (is_swapped ? "ffn_down" : "ffn_up");
  const std::string down = prefix + (is_swapped ? "ffn_up" : "ffn_down");
  check.matrix(up + ".weight", {n_embd, config.n_ff});
  f32_if_present(file, up + ".bias", {config.n_ff}, check);
  check.matrix(down + ".weight", {config.n_ff, n_embd});
  f32_if_present(file, down + ".bias", {n_embd}, check);
}

/// All but patches, positions and projector.
void check_tower(const GgufFile& file, const VisionConfig& config, FfnNames names,
                 TensorCheck& check) {
  check.kernel("v.patch_embd.weight", {config.patch_size, config.patch_size, 3, config.n_embd});
  f32_if_present(file, "v.patch_embd.bias", {config.n_embd}, check);
  check_optional_norm(file, "v.pre_ln", config.n_embd, check);
  check_optional_norm(file, "v.post_ln", config.n_embd, check);
  for (int il = 0; il < config.n_layer; ++il) {
    check_layer(file, config, fmt::format("v.blk.{}.", il), names, check);
  }
}

int64_t n_patches(const VisionConfig& config) {
  const int64_t side = config.mtmd().chunk_size / config.patch_size;
  return side * side;
}

/// LLaVA's two layers; or, where there is an mm.3, Yi-VL's with a norm behind each.
void check_llava_projector(const GgufFile& file, const VisionConfig& config, TensorCheck& check) {
  const bool has_norms = file.find_tensor("mm.3.weight") != nullptr;
  const std::string last = has_norms ? "mm.3" : "mm.2";
  const TensorInfo* first = file.find_tensor("mm.0.bias");
  const int64_t n_mid = first != nullptr ? first->ne[0] : config.n_embd_out;
  check.matrix("mm.0.weight", {config.n_embd, n_mid});
  check.f32("mm.0.bias", {n_mid});
  check.matrix(last + ".weight", {n_mid, config.n_embd_out});
  check.f32(last + ".bias", {config.n_embd_out});
  if (has_norms) {
    for (const std::string part : {"weight", "bias"}) {
      check.f32("mm.1." + part, {n_mid});
      check.f32("mm.4." + part, {config.n_embd_out});
    }
  }
  // Published files carry it, but the library lays chunks out without it.
  for (const std::string name : {"v.image_newline", "model.image_newline"}) {
    f32_if_present(file, name, {config.n_embd_out}, check);
  }
}

std::vector<std::array<int, 2>> read_grid_sizes(const GgufFile& file, int chunk_size) {
  const std::string key = "clip.vision.image_grid_pinpoints";
  const std::vector<int64_t> values = file.find_int_array(key).value_or(std::vector<int64_t>{});
  if (values.size() % 2 != 0 || values.size() > 2 * kMaxGridSizes) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected key {} to hold up to {} pairs, got {} numbers",
                file.path(), key, kMaxGridSizes, values.size());
  }
  std::vector<std::array<int, 2>> sizes;
  for (size_t i = 0; i < values.size(); i += 2) {
    for (const int64_t side : {values[i], values[i + 1]}) {
      if (side < chunk_size || side > int64_t{kMaxChunksPerSide} * chunk_size ||
          side % chunk_size != 0) {
        throw_error(ErrorCode::kCorrupt, "[{}] expected key {} to hold multiples of {}, got {}",
                    file.path(), key, chunk_size, side);
      }
    }
    sizes.push_back({static_cast<int>(values[i]), static_cast<int>(values[i + 1])});
  }
  return sizes;
}

}  // namespace

void refuse_mtmd_type(const GgufFile& file, std::string_view projector_type) {
  if (contains(kNonCausal, projector_type)) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected a projector whose pictures are attended causally, got {}, where all "
                "tokens of a picture see each other (non-causal attention)",
                file.path(), projector_type);
  }
  if (contains(kAudio, projector_type)) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected a projector for pictures, got {}, for sound", file.path(),
                projector_type);
  }
}

void read_mtmd_llava(const GgufFile& file, VisionConfig& config) {
  check_keys(file, config);
  MtmdVision vision = read_chunk(file, config, /*merge=*/1);
  vision.grid_sizes = read_grid_sizes(file, vision.chunk_size);
  config.family = std::move(vision);
  config.n_embd_out = read_n_embd_out(
      file, file.find_tensor("mm.3.weight") != nullptr ? "mm.3.weight" : "mm.2.weight");
  TensorCheck check(file);
  check_tower(file, config, FfnNames::kMaySwap, check);
  const bool has_class = file.find_tensor("v.class_embd") != nullptr;
  if (has_class) check.f32("v.class_embd", {config.n_embd});
  check.kernel("v.position_embd.weight", {config.n_embd, n_patches(config) + (has_class ? 1 : 0)});
  check_llava_projector(file, config, check);
  check.refuse_others();
}

void read_mtmd_idefics3(const GgufFile& file, VisionConfig& config) {
  check_keys(file, config);
  const std::string prefix = "clip.vision.";
  const auto merge = static_cast<int>(file.get_int(prefix + "projector.scale_factor", 2, 16));
  MtmdVision vision = read_chunk(file, config, merge);
  vision.longest_edge = static_cast<int>(
      file.find_int(prefix + "preproc_image_size", 0, kMaxChunksPerSide * vision.chunk_size)
          .value_or(0));
  config.family = vision;
  config.n_embd_out = read_n_embd_out(file, "mm.model.fc.weight");
  TensorCheck check(file);
  check_tower(file, config, FfnNames::kMaySwap, check);
  check.f32("v.position_embd.weight", {config.n_embd, n_patches(config)});
  check.matrix("mm.model.fc.weight", {int64_t{config.n_embd} * merge * merge, config.n_embd_out});
  check.refuse_others();
}

void read_mtmd_janus(const GgufFile& file, VisionConfig& config) {
  check_keys(file, config);
  config.family = read_chunk(file, config, /*merge=*/1);
  config.n_embd_out = read_n_embd_out(file, "mm.1.weight");
  TensorCheck check(file);
  check_tower(file, config, FfnNames::kPublished, check);
  check.f32("v.position_embd.weight", {config.n_embd, n_patches(config)});
  const TensorInfo* first = file.find_tensor("mm.0.bias");
  const int64_t n_mid = first != nullptr ? first->ne[0] : config.n_embd_out;
  check.matrix("mm.0.weight", {config.n_embd, n_mid});
  check.f32("mm.0.bias", {n_mid});
  check.matrix("mm.1.weight", {n_mid, config.n_embd_out});
  check.f32("mm.1.bias", {config.n_embd_out});
  check.refuse_others();
}

}  // namespace plateau::model

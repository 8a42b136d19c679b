// What a vision projector's GGUF (mmproj) says, validated like ModelConfig.
// Tested by tests/model/vision_config_test.cc, qwen25vl_config_test.cc and mtmd_config_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "model/gguf_file.h"

namespace plateau::model {

/// InternVL's tower: InternViT (300M or 6B form) over square tiles, pixel shuffle, two-layer
/// projector.
struct InternVlVision {
  int tile_size = 0;      // side of a tile in pixels; a multiple of patch_size * scale_factor
  int scale_factor = 0;   // pixel shuffle: scale_factor x scale_factor patches become one token
  bool rms_norm = false;  // InternViT-6B: RMS norm without bias
  bool qk_norm = false;   // InternViT-6B: norm over all of Q and of K
  int min_tiles = 1;
  int max_tiles = 12;  // what the family uses by default; native detail may need more
};

/// Qwen2.5-VL's tower: a picture of any size as patches, window attention in most layers, 2 x 2
/// merger (arXiv:2502.13923).
struct Qwen25VlVision {
  int merge = 2;           // merge x merge patches become one token
  int window_tokens = 4;   // side of an attention window in tokens
  int full_every = 8;      // every full_every-th layer attends to all patches; 0: each layer does
  int64_t min_pixels = 0;  // a smaller picture is enlarged
  int64_t max_pixels = 0;  // where the family's own processor begins to shrink

  bool is_full_attention(int il) const { return full_every == 0 || (il + 1) % full_every == 0; }
  int window_patches() const { return merge * window_tokens; }  // side of a window in patches
};

/// A tower that llama.cpp's own library (libmtmd) runs: a ViT over square chunks of the picture,
/// which the library cuts. What is read here is what its memory depends on.
struct MtmdVision {
  int chunk_size = 0;    // side of a chunk in pixels; a multiple of patch_size * merge
  int merge = 1;         // merge x merge patches become one token
  int longest_edge = 0;  // idefics3: what the longer side of a picture becomes; 0: its native size
  /// mlp: what a picture larger than a chunk may become, [width, height] in pixels; none: a picture
  /// is one chunk.
  std::vector<std::array<int, 2>> grid_sizes = {};
};

struct VisionConfig {
  std::string projector_type;  // clip.projector_type
  std::string name;            // general.name, may be empty
  int patch_size = 0;
  int n_embd = 0;
  int n_layer = 0;
  int n_head = 0;  // divides n_embd
  int n_ff = 0;
  int n_embd_out = 0;  // width of the language model that it was trained with
  float norm_eps = 1e-6f;
  std::array<float, 3> image_mean = {0, 0, 0};  // of channel values in [0, 1]
  std::array<float, 3> image_std = {1, 1, 1};
  int frames_per_unit = 1;  // so many consecutive frames of a film become one picture's tokens
  std::variant<InternVlVision, Qwen25VlVision, MtmdVision> family;

  bool is_internvl() const { return std::holds_alternative<InternVlVision>(family); }
  bool is_qwen25vl() const { return std::holds_alternative<Qwen25VlVision>(family); }
  bool is_mtmd() const { return std::holds_alternative<MtmdVision>(family); }
  /// REQUIRES: the projector is of that family.
  const InternVlVision& internvl() const;
  const Qwen25VlVision& qwen25vl() const;
  const MtmdVision& mtmd() const;

  /// Whether its pictures have positions of three components (M-RoPE).
  bool has_mrope() const { return is_qwen25vl(); }

  int head_dim() const { return n_embd / n_head; }
  // InternVL.
  int patches_per_side() const { return internvl().tile_size / patch_size; }
  int n_patches() const { return patches_per_side() * patches_per_side(); }
  int tokens_per_tile() const {
    return n_patches() / (internvl().scale_factor * internvl().scale_factor);
  }
  // Qwen2.5-VL: side of a token in pixels.
  int token_size() const { return patch_size * qwen25vl().merge; }
  // libmtmd: tokens along a side of a chunk.
  int chunk_side() const { return mtmd().chunk_size / (patch_size * mtmd().merge); }
};

/// Errors: kUnsupported (projector type by name), kCorrupt (file, key or tensor, expected, found).
VisionConfig read_vision_config(const GgufFile& file);

}  // namespace plateau::model

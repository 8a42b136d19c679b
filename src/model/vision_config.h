// What a vision projector's GGUF (mmproj) says, validated like ModelConfig.
// Tested by tests/model/vision_config_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "model/gguf_file.h"

namespace plateau::model {

/// InternVL's tower: InternViT (300M or 6B form), pixel shuffle, two-layer projector.
struct VisionConfig {
  std::string projector_type;  // clip.projector_type: "internvl"
  std::string name;            // general.name, may be empty
  int tile_size = 0;           // side of a tile in pixels; a multiple of patch_size * scale_factor
  int patch_size = 0;
  int n_embd = 0;
  int n_layer = 0;
  int n_head = 0;  // divides n_embd
  int n_ff = 0;
  int scale_factor = 0;  // pixel shuffle: scale_factor x scale_factor patches become one token
  int n_embd_out = 0;    // width of the language model that it was trained with
  float norm_eps = 1e-6f;
  bool rms_norm = false;                        // InternViT-6B: RMS norm without bias
  bool qk_norm = false;                         // InternViT-6B: norm over all of Q and of K
  std::array<float, 3> image_mean = {0, 0, 0};  // of channel values in [0, 1]
  std::array<float, 3> image_std = {1, 1, 1};
  int min_tiles = 1;
  int max_tiles = 12;  // what the family uses by default; native detail may need more

  int patches_per_side() const { return tile_size / patch_size; }
  int n_patches() const { return patches_per_side() * patches_per_side(); }
  int tokens_per_tile() const { return n_patches() / (scale_factor * scale_factor); }
};

/// Errors: kUnsupported (projector type by name), kCorrupt (file, key or tensor, expected, found).
VisionConfig read_vision_config(const GgufFile& file);

}  // namespace plateau::model

// InternVL's vision tower: InternViT over one batch of tiles, pixel shuffle, two-layer projector.
// Source: InternVL's published modeling code (InternVL3.5, arXiv:2508.18265); the 300M form has
// layer norm, the 6B form RMS norm and a norm over all of Q and of K. Tested by
// tests/vision/internvit_test.cc.
#pragma once

#include "ggml-cpp.h"
#include "model/vision_config.h"
#include "model/weights.h"

namespace plateau::vision {

struct TowerGraph {
  ggml_context_ptr context;
  ggml_cgraph* graph = nullptr;
  ggml_tensor* pixels = nullptr;      // in: f32 [tile, tile, 3, n_tiles]
  ggml_tensor* embeddings = nullptr;  // out: f32 [n_embd_out, tokens_per_tile, n_tiles]
};

size_t internvit_max_nodes(const model::VisionConfig& config);

TowerGraph build_internvit(const model::VisionConfig& config, const model::WeightMap& weights,
                           int n_tiles);

}  // namespace plateau::vision

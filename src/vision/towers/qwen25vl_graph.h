// Qwen2.5-VL's vision tower as small graphs over a part of the patches; what lies between them is
// the residual stream. RMS norm, 2-D rotary positions, gated MLP, attention within windows or over
// all patches, 2 x 2 merger. Source: the published modeling code (arXiv:2502.13923).
// Tested by tests/vision/qwen25vl_test.cc.
#pragma once

#include "ggml-cpp.h"
#include "model/vision_config.h"
#include "model/weights.h"

namespace plateau::vision {

/// What a tower holds between graphs. Shapes in ggml order.
struct PatchStream {
  ggml_tensor* x = nullptr;  // f32 [n_embd, n_patch], in window order
  // Of the full-attention layer that runs; null in a tower without one.
  ggml_tensor* k = nullptr;  // f16 [head_dim, n_patch, n_head]
  ggml_tensor* v = nullptr;  // likewise
};

/// Patches [first, first + n) of the stream.
struct PatchRange {
  int64_t first = 0;
  int64_t n = 0;
};

struct StreamGraph {
  ggml_context_ptr context;
  ggml_cgraph* graph = nullptr;
  ggml_tensor* positions = nullptr;   // in: i32 [4 * n]: all y, all x, all y, all x
  ggml_tensor* patches[2] = {};       // in: f32 [3 * patch^2, n], one for each frame
  ggml_tensor* embeddings = nullptr;  // out: f32 [n_embd_out, n / merge^2]
};

size_t qwen25vl_max_nodes(const model::VisionConfig& config);

class Qwen25VlGraphs {
 public:
  /// All must outlive the result.
  Qwen25VlGraphs(const model::VisionConfig& config, const model::WeightMap& weights,
                 const PatchStream& stream)
      : config_(config), weights_(weights), stream_(stream) {}

  /// x = the patches' embedding. n_frames 1: a still picture is its own second frame.
  StreamGraph embed(PatchRange range, int n_frames) const;
  /// Layers [il_begin, il_end), whose attention stays within windows; the range is n_windows of
  /// them.
  StreamGraph windows(PatchRange range, int64_t n_windows, int il_begin, int il_end) const;
  /// K and V of a full-attention layer.
  StreamGraph keys_values(PatchRange range, int il) const;
  /// That layer, once K and V of all patches are there.
  StreamGraph queries(PatchRange range, int il) const;
  /// The language model's embeddings of the range's tokens.
  StreamGraph merge(PatchRange range) const;

 private:
  class Builder;

  const model::VisionConfig& config_;
  const model::WeightMap& weights_;
  const PatchStream& stream_;
};

}  // namespace plateau::vision

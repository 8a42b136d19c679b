// Runs Qwen2.5-VL's tower over a picture of any size in bounded memory: what is held for each patch
// is its row of the residual stream, f32, and, while a full-attention layer runs, its K and V, f16.
// Everything else lives for one group of patches. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "media/pixel_bands.h"
#include "model/backend.h"
#include "model/vision_config.h"
#include "model/weights.h"
#include "vision/encode_plan.h"

namespace plateau::vision {

class Qwen25VlTower {
 public:
  /// All must outlive the tower. `sched` takes graphs of qwen25vl_max_nodes() nodes.
  Qwen25VlTower(const model::VisionConfig& config, const model::WeightMap& weights,
                const model::Backends& backends, ggml_backend_sched_t sched);

  /// Embeddings of the area's tokens in reading order: [n_embd_out, n_tokens]. Pulls the area's
  /// pixel rows from `frames`: one still picture, or two consecutive frames of a film.
  /// `on_progress` (may be empty) sees the share that is done, between groups.
  /// Errors: kResourceExhausted, kCancelled, those of the frames.
  std::vector<float> encode(const PatchArea& area, std::span<media::PixelBands* const> frames,
                            int group, const std::function<void(double)>& on_progress);

  /// The most bytes held at once by encode() since construction: stream, K and V, compute and work
  /// buffers, staging, result.
  int64_t peak_bytes() const { return peak_bytes_; }

 private:
  class Run;

  const model::VisionConfig& config_;
  const model::WeightMap& weights_;
  const model::Backends& backends_;
  ggml_backend_sched_t sched_;
  int64_t peak_bytes_ = 0;
};

}  // namespace plateau::vision

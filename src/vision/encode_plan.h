// How a picture of any size is encoded within a memory bound: the arithmetic of the encoder's
// memory, and the choice of bands. Pure. Tested by tests/vision/encode_plan_test.cc.
#pragma once

#include <cstdint>

#include "model/vision_config.h"

namespace plateau::vision {

/// Part of a picture, in tokens: all columns, rows [first_row, first_row + n_rows).
struct PatchArea {
  int first_row = 0;
  int n_rows = 0;
  int n_cols = 0;

  int64_t n_tokens() const { return int64_t{n_rows} * n_cols; }
};

struct EncodeOptions {
  int group = 1024;  // patches per graph
  int n_frames = 1;  // 2: a film's
  int n_threads = 1;
};

/// Peak bytes of encoding n_rows x n_cols tokens at once with Qwen2.5-VL's tower: what is held for
/// each patch, plus one group's compute buffers. Without weights and the picture's own rows.
int64_t encoder_scratch_bytes(const model::VisionConfig& config, int n_rows, int n_cols,
                              const EncodeOptions& options);

struct EncodePlan {
  int rows_per_unit = 0;  // in tokens; whole window rows, or all
  int n_units = 1;        // 1: exact; more: full attention sees one band at a time
  int group = 0;          // patches per graph
  int64_t bytes = 0;      // encoder_scratch_bytes() of the largest unit
};

/// The fastest exact encoding that fits `max_bytes` (0: no bound), else the fewest bands of whole
/// window rows, of nearly equal height. REQUIRES: a Qwen2.5-VL projector, a size that is positive.
/// Errors: kResourceExhausted when not even one window row fits, naming the bytes it needs.
EncodePlan plan_encode(const model::VisionConfig& config, int n_rows, int n_cols, int n_frames,
                       int64_t max_bytes, int n_threads);

}  // namespace plateau::vision

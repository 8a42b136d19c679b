// What libmtmd needs for one picture: the arithmetic of its memory, and the pictures that it can
// take. Its memory is not bounded: it holds the whole picture and all chunks of it. Pure.
// Tested by tests/vision/mtmd_plan_test.cc.
#pragma once

#include <cstdint>

#include "model/vision_config.h"

namespace plateau::vision {

/// Width and height of a picture in pixels, upright.
struct PictureSize {
  int64_t width = 0;
  int64_t height = 0;
};

/// Throws for a picture that libmtmd would compute with numbers that overflow or become 0.
/// Errors: kResourceExhausted, kInvalidArgument.
void require_mtmd_size(const model::VisionConfig& config, PictureSize size);

/// Held while a picture is cut: the picture and the library's copy, what the resizes hold between
/// their passes, the chunks in f32. An upper bound.
int64_t mtmd_cut_bytes(const model::VisionConfig& config, PictureSize size, int64_t n_chunks);

/// Held from then on until the picture is encoded: its chunks, one of them once more, and one
/// chunk's embeddings, twice.
int64_t mtmd_chunk_bytes(const model::VisionConfig& config, int64_t n_chunks);

/// What ggml's CPU kernels work with beside the compute buffer. An upper bound.
int64_t mtmd_work_bytes(const model::VisionConfig& config, int n_threads);

}  // namespace plateau::vision

// How much memory a film's decoder and conversion take, before they take it.
#pragma once

#include <cstdint>

#include "media/video.h"
#include "media/video_file.h"
#include "media/video_handle.h"

namespace plateau::media {

/// REQUIRES: `frame` is the first that `context` decoded.
VideoMemory memory_of(VideoFile& file, AVCodecContext& context, const AVFrame& frame,
                      bool transposed);

/// Of a Resampler: its ring of rows, its weights, its sums.
int64_t resampler_bytes(int64_t in_width, int64_t in_height, int64_t out_width, int64_t out_height);

}  // namespace plateau::media

// A decoded frame to 8-bit RGB, upright, at an exact size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "media/image.h"
#include "media/video_geometry.h"
#include "media/video_handle.h"

namespace plateau::media {

class FramePixels {
 public:
  /// `path` is for messages.
  explicit FramePixels(std::string path) : path_(std::move(path)) {}

  /// Converts at the stored size, turns, and resizes as Resampler does to [width, height].
  /// Errors: kUnsupported for pixels that libswscale does not read.
  Rgb8 convert(const AVFrame& frame, const VideoGeometry& geometry, int width, int height);

  /// Bytes of the buffers that are kept from frame to frame, and of those that the last conversion
  /// used besides its result.
  int64_t buffer_bytes() const { return buffer_bytes_; }

 private:
  void prepare(const AVFrame& frame);

  std::string path_;
  SwsPtr scaler_;
  // What scaler_ and rgb_ were made for.
  int width_ = 0;
  int height_ = 0;
  int format_ = -1;
  int matrix_ = -1;
  int range_ = -1;
  bool alpha_ = false;
  int row_bytes_ = 0;
  AvBytesPtr rgb_;  // [height, row_bytes]: RGB, or RGBA where alpha
  int64_t buffer_bytes_ = 0;
};

}  // namespace plateau::media

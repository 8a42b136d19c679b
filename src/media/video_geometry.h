// From the frame as stored to the picture as shown.
#pragma once

#include <cstdint>

#include "media/video_handle.h"

namespace plateau::media {

struct VideoGeometry {
  int stored_width = 0;
  int stored_height = 0;
  // From the stored frame to the upright one, in this order.
  bool transpose = false;
  bool mirror_x = false;  // left and right of the upright frame
  bool mirror_y = false;
  // Upright, with square pixels: the shorter side of a pixel is stretched, so that nothing is lost.
  int64_t shown_width = 0;
  int64_t shown_height = 0;
  bool ignored_aspect = false;  // pixels that claim to be more than 16 times as long as wide
};

/// By the stream's display matrix, else the frame's own, to the nearest quarter turn; and by the
/// stream's pixel aspect ratio, else the frame's.
VideoGeometry geometry_of(AVFormatContext& context, AVStream& stream, AVFrame& frame);

}  // namespace plateau::media

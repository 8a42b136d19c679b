// How long a film lasts: what its header says is checked or, where it says nothing, found.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "media/video_opened.h"

namespace plateau::media {

struct VideoLength {
  double end_s = 0;       // of the last frame, on the container's clock
  int64_t n_packets = 0;  // of the whole film where walked
  bool walked = false;
  double declared_s = 0;  // the header's duration; 0: none
};

/// Seeks to the end where the container has an index, and else, or when nothing is found there,
/// reads all packets from the start. Decodes nothing; the position of `opened` is lost.
VideoLength measure_length(OpenedVideo& opened, const VideoLimits& limits,
                           const std::function<bool()>& should_cancel);

}  // namespace plateau::media

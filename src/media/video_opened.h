// A film whose header has been read and found within the limits, and whose first frame is decoded.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "media/video_decoder.h"
#include "media/video_file.h"

namespace plateau::media {

struct OpenedVideo {
  std::unique_ptr<VideoFile> file;
  std::unique_ptr<VideoDecoder> decoder;  // after file: goes first
  FramePtr first;                         // as stored
  double first_s = 0;                     // when it is shown, on the container's clock
  /// Where the film's time begins: the first packet's time or the first frame's, whichever is
  /// earlier. They differ where the beginning cannot be decoded.
  double origin_s = 0;
};

/// Errors: as probe_video(); kCorrupt when no frame can be decoded.
OpenedVideo open_video(const std::string& path, const VideoLimits& limits, int n_threads,
                       const std::function<bool()>& should_cancel);

}  // namespace plateau::media

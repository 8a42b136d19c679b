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
  double first_packet_s = 0;              // the first packet's time, or first_s
  /// Where the film's time begins: the first packet's time or the first frame's, whichever is
  /// earlier. They differ where the beginning cannot be decoded.
  double origin_s = 0;

  /// The packets come in another order than they are shown, and their times are those of decoding:
  /// the decoder counts on from the first packet to tell the times of showing.
  bool reordered_without_times();
};

/// Errors: as probe_video(); kCorrupt when no frame can be decoded.
OpenedVideo open_video(const std::string& path, const VideoLimits& limits, int n_threads,
                       const std::function<bool()>& should_cancel);

}  // namespace plateau::media

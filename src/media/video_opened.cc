// Tested by video_test.cc and video_hostile_test.cc.
#include "media/video_opened.h"

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace plateau::media {

bool OpenedVideo::reordered_without_times() {
  return file->container() == "avi" && decoder->context().has_b_frames > 0;
}

OpenedVideo open_video(const std::string& path, const VideoLimits& limits, int n_threads,
                       const std::function<bool()>& should_cancel) {
  OpenedVideo opened;
  opened.file = std::make_unique<VideoFile>(path, limits, should_cancel);
  opened.decoder = std::make_unique<VideoDecoder>(*opened.file, limits, n_threads);
  opened.first.reset(checked_alloc(av_frame_alloc()));
  const std::optional<double> first_s = opened.decoder->next(*opened.first);
  if (!first_s.has_value()) {
    const std::string& reason = opened.decoder->first_damage();
    // The only trace that a refusal by max_pixels leaves where the header gave no size.
    const bool too_large = reason.find("Picture size") != std::string::npos &&
                           reason.find("Picture size 0x") == std::string::npos;
    throw_error(too_large ? ErrorCode::kResourceExhausted : ErrorCode::kCorrupt,
                "[video] expected a frame of at most {} pixels that can be decoded, got none in "
                "'{}' ({}); try a complete copy of the file",
                limits.max_pixels, path, reason.empty() ? "no packets" : reason);
  }
  opened.first_s = *first_s;
  opened.first_packet_s = opened.decoder->first_packet_s().value_or(*first_s);
  opened.origin_s = *first_s;
  if (!opened.reordered_without_times()) {
    opened.origin_s = std::min(opened.first_s, opened.first_packet_s);
  }
  return opened;
}

}  // namespace plateau::media

// Tested by video_test.cc and video_hostile_test.cc.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "media/video.h"
#include "media/video_geometry.h"
#include "media/video_length.h"
#include "media/video_memory.h"
#include "media/video_opened.h"

namespace plateau::media {
namespace {

constexpr double kMaxFps = 1000.0;
// A header that says this much more than there is was written for a longer file.
constexpr double kMissing = 1.0 + 1.0 / 64;

double average_fps(const AVStream& stream, const VideoLength& length, double duration_s) {
  double fps = 0;
  if (length.walked && length.n_packets > 1 && duration_s > 0) {
    fps = static_cast<double>(length.n_packets) / duration_s;
  } else if (stream.avg_frame_rate.num > 0 && stream.avg_frame_rate.den > 0) {
    fps = seconds(stream.avg_frame_rate);
  }
  return fps > 0 && fps <= kMaxFps ? fps : 0.0;
}

void check_shown(const VideoGeometry& geometry, const VideoLimits& limits,
                 const std::string& path) {
  if (geometry.shown_width * geometry.shown_height > limits.max_pixels) {
    throw_error(ErrorCode::kResourceExhausted,
                "[video] expected frames of at most {} pixels, got {} x {} as shown in '{}'; try a "
                "smaller film or a higher pixel limit",
                limits.max_pixels, geometry.shown_width, geometry.shown_height, path);
  }
}

std::vector<std::string> notes_of(OpenedVideo& opened, const VideoGeometry& geometry) {
  std::vector<std::string> notes;
  const AVFrame& frame = *opened.first;
  if (opened.file->n_video_streams() > 1) {
    notes.push_back(fmt::format("one of {} video streams is read", opened.file->n_video_streams()));
  }
  if (frame.color_trc == AVCOL_TRC_SMPTE2084 || frame.color_trc == AVCOL_TRC_ARIB_STD_B67) {
    notes.emplace_back("the film has a high dynamic range, which is not tone-mapped");
  }
  if (frame.interlaced_frame != 0) {
    notes.emplace_back("the film is interlaced, and its fields are not separated");
  }
  if (geometry.ignored_aspect) {
    notes.emplace_back("the film's pixel aspect ratio is absurd and ignored");
  }
  if (opened.first_s > opened.origin_s) {
    notes.push_back(fmt::format("the first {:.3f} s cannot be decoded and show the first frame",
                                opened.first_s - opened.origin_s));
  }
  return notes;
}

}  // namespace

VideoInfo probe_video(const std::string& path, const VideoLimits& limits,
                      const std::function<bool()>& should_cancel) {
  OpenedVideo opened = open_video(path, limits, /*n_threads=*/1, should_cancel);
  const VideoGeometry geometry =
      geometry_of(opened.file->context(), opened.file->stream(), *opened.first);
  check_shown(geometry, limits, path);
  VideoInfo info;
  info.width = geometry.shown_width;
  info.height = geometry.shown_height;
  info.container = opened.file->container();
  info.codec = avcodec_get_name(opened.decoder->context().codec_id);
  info.notes = notes_of(opened, geometry);

  const VideoLength length = measure_length(opened, limits, should_cancel);
  info.duration_s = std::max(0.0, length.end_s - opened.origin_s);
  info.duration_walked = length.walked;
  if (info.duration_s > limits.max_duration_s) {
    throw_error(ErrorCode::kResourceExhausted,
                "[video] expected a film of at most {} s, got {:.0f} s in '{}'; try cutting it",
                limits.max_duration_s, info.duration_s, path);
  }
  if (length.declared_s > info.duration_s * kMissing) {
    info.notes.push_back(fmt::format("the film says that it lasts {:.3f} s, but ends at {:.3f} s",
                                     length.declared_s, info.duration_s));
  }
  info.fps = average_fps(opened.file->stream(), length, info.duration_s);
  info.memory =
      memory_of(*opened.file, opened.decoder->context(), *opened.first, geometry.transpose);
  return info;
}

}  // namespace plateau::media

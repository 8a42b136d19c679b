// Tested by video_test.cc and video_hostile_test.cc.
#include "media/video_length.h"

#include <algorithm>

#include "media/video_formats.h"

namespace plateau::media {
namespace {

struct Packets {
  int64_t n = 0;
  double last_s = 0;  // when the last frame is due
  double end_s = 0;   // when it is over
};

/// From the file's position to its end.
Packets read_to_end(VideoFile& file) {
  file.watch().start();
  const PacketPtr packet(checked_alloc(av_packet_alloc()));
  Packets packets;
  double gap_s = 0;  // between the last two frames
  double duration_s = 0;
  while (file.read(*packet)) {
    const int64_t ticks = packet->pts != kAvNoTimestamp ? packet->pts : packet->dts;
    if (ticks == kAvNoTimestamp || (packet->flags & AV_PKT_FLAG_DISCARD) != 0) continue;
    const double time_s = file.seconds_of(ticks);
    if (packets.n++ > 0 && time_s <= packets.last_s) continue;
    if (packets.n > 1) gap_s = time_s - packets.last_s;
    packets.last_s = time_s;
    duration_s = std::max(0.0, file.seconds_of(packet->duration));
  }
  packets.end_s = packets.last_s + (duration_s > 0 ? duration_s : gap_s);
  return packets;
}

double declared_seconds(VideoFile& file) {
  const AVStream& stream = file.stream();
  if (stream.duration > 0) return file.seconds_of(stream.duration);
  const int64_t duration = file.context().duration;
  return duration > 0 ? static_cast<double>(duration) / AV_TIME_BASE : 0.0;
}

// By which frames are shown later than the times of their packets say.
double delay_of(OpenedVideo& opened) {
  if (!opened.reordered_without_times()) return 0;
  return std::max(0.0, opened.origin_s - opened.first_packet_s);
}

}  // namespace

VideoLength measure_length(OpenedVideo& opened, const VideoLimits& limits,
                           const std::function<bool()>& should_cancel) {
  VideoFile& file = *opened.file;
  VideoLength length;
  length.declared_s = declared_seconds(file);
  if (has_index(file.container()) && length.declared_s > 0) {
    file.watch().start();
    if (file.seek(opened.origin_s + length.declared_s)) {
      const Packets packets = read_to_end(file);
      if (packets.n > 0 && packets.end_s > opened.origin_s) {
        length.end_s = packets.end_s + delay_of(opened);
        return length;
      }
    }
  }
  VideoFile from_start(file.path(), limits, should_cancel);
  const Packets packets = read_to_end(from_start);
  length.n_packets = packets.n;
  length.end_s = std::max(packets.end_s + delay_of(opened), opened.origin_s);
  length.walked = true;
  return length;
}

}  // namespace plateau::media

// A film's frames in the order in which they are shown.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "media/video.h"
#include "media/video_file.h"
#include "media/video_handle.h"

namespace plateau::media {

/// Bytes of decoded frames that exist now, counted where the decoder asks for them.
struct FrameBytes {
  std::atomic<int64_t> now = 0;
  std::atomic<int64_t> peak = 0;
};

/// What decoding came across.
struct DecoderCounts {
  int64_t n_decoded = 0;
  int64_t n_damaged = 0;     // packets that it refused and frames that it patched up
  int64_t n_disordered = 0;  // see VideoReadReport
};

class VideoLog;

class VideoDecoder {
 public:
  /// REQUIRES: `file` outlives it. Errors: kUnsupported, kResourceExhausted (pixels by the header),
  /// kCorrupt.
  VideoDecoder(VideoFile& file, const VideoLimits& limits, int n_threads);
  VideoDecoder(const VideoDecoder&) = delete;
  VideoDecoder& operator=(const VideoDecoder&) = delete;

  /// The next frame in place of what `frame` held, and its time on the container's clock in
  /// seconds, which never falls; nullopt at the end. Errors: those of VideoFile::read().
  std::optional<double> next(AVFrame& frame);

  /// To be called after each seek. Frames that are shown before the first packet's frame are left
  /// out from then on: they may lean on frames before it.
  void restart();

  /// The first packet's time since the start or the last jump, where it has one.
  std::optional<double> first_packet_s() const { return first_packet_s_; }
  /// The latest time of the packets that went in since then.
  double position_s() const { return position_s_; }
  AVCodecContext& context() { return *context_; }
  const DecoderCounts& counts() const { return counts_; }
  int64_t peak_frame_bytes() const { return frame_bytes_->peak; }
  /// The library's reason for the first damage; empty when there was none.
  const std::string& first_damage() const { return first_damage_; }

 private:
  static int on_get_buffer(AVCodecContext* context, AVFrame* frame, int flags);

  bool feed();
  void count_damage(int code);
  void count_complaints(const VideoLog& log);
  double time_of(const AVFrame& frame);

  VideoFile& file_;
  int64_t max_pixels_;
  std::shared_ptr<FrameBytes> frame_bytes_ = std::make_shared<FrameBytes>();
  PacketPtr packet_;
  CodecContextPtr context_;
  DecoderCounts counts_;
  std::string first_damage_;
  std::optional<double> first_packet_s_;
  std::optional<double> last_s_;
  double position_s_ = 0;
  bool draining_ = false;
  bool leaves_out_early_ = false;
  bool settled_ = false;  // a frame has come since the start or the last jump
  // What count_complaints() has dealt with.
  int64_t n_errors_seen_ = 0;
  int64_t n_damaged_seen_ = 0;
};

}  // namespace plateau::media

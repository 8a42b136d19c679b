// A film's container, read through our own descriptor: libavformat never sees a file name, and can
// open nothing else.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "media/input_file.h"
#include "media/video.h"
#include "media/video_handle.h"

namespace plateau::media {

/// Ends waits that take too long, and those that the user has ended.
class VideoWatch {
 public:
  VideoWatch(const VideoLimits& limits, std::function<bool()> should_cancel);

  /// A new wait begins: for the header, the end, or one more frame.
  void start();
  void count_packet() { ++n_packets_; }
  /// Whether to stop. For callbacks: does not throw.
  bool expired() noexcept;
  /// Errors: kCancelled, kResourceExhausted.
  void check(const std::string& path);

 private:
  enum class Reason { kNone, kCancelled, kTime, kPackets };

  int64_t max_packets_;
  std::chrono::duration<double> max_wait_;
  std::function<bool()> should_cancel_;
  std::chrono::steady_clock::time_point start_;
  int64_t n_packets_ = 0;
  Reason reason_ = Reason::kNone;
};

class VideoFile {
 public:
  /// Opens the file, reads its header and chooses the video stream: the one marked as default, of
  /// several the one with the most pixels. Errors: as probe_video().
  VideoFile(const std::string& path, const VideoLimits& limits,
            std::function<bool()> should_cancel);
  VideoFile(const VideoFile&) = delete;
  VideoFile& operator=(const VideoFile&) = delete;

  const std::string& path() const { return source_.file.path(); }
  const std::string& container() const { return container_; }
  AVFormatContext& context() { return *context_; }
  AVStream& stream() { return *stream_; }
  int n_video_streams() const { return n_video_streams_; }
  int64_t size_bytes() const { return source_.file.size(); }
  VideoWatch& watch() { return source_.watch; }

  /// The stream's next packet, in place of what `packet` held; false at the end of the file.
  /// Damage is passed over and counted. Errors: kCancelled, kResourceExhausted.
  bool read(AVPacket& packet);
  int64_t n_damaged() const { return n_damaged_; }

  /// Jumps to the last frame that can be decoded by itself and is not after `time_s`. False when
  /// the container cannot; then the position is lost. Errors: kCancelled, kResourceExhausted.
  bool seek(double time_s);
  /// When that frame is due, by the index that has been read so far.
  std::optional<double> key_frame_before(double time_s);

  /// Seconds on the container's own clock, and back.
  double seconds_of(int64_t ticks) {
    return static_cast<double>(ticks) * seconds(stream_->time_base);
  }
  int64_t ticks_of(double time_s);

 private:
  struct Source {
    InputFile file;
    VideoWatch watch;
    int64_t offset = 0;
  };

  static int on_read(void* opaque, uint8_t* buffer, int n_bytes);
  static int64_t on_seek(void* opaque, int64_t offset, int whence);
  static int on_open(AVFormatContext* context, AVIOContext** io, const char* url, int flags,
                     AVDictionary** options);

  void open();
  void choose_stream();
  void discard_others();

  Source source_;
  std::string container_;
  IoPtr io_;
  FormatContextPtr context_;  // after io_: closed first
  AVStream* stream_ = nullptr;
  int n_video_streams_ = 0;
  unsigned n_streams_seen_ = 0;
  int64_t n_damaged_ = 0;
  // A mov index has times of decoding: frames that stand alone are shown up to this much later, as
  // far as they have been seen.
  double index_delay_s_ = 0;
};

}  // namespace plateau::media

// Tested by video_test.cc and video_hostile_test.cc.
#include "media/video_file.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/check.h"
#include "media/video_formats.h"
#include "media/video_log.h"

namespace plateau::media {
namespace {

constexpr int kIoBytes = 1 << 15;
// A container that announces its streams only as they come has announced them by then.
constexpr int kPacketsUntilStreams = 10'000;
// So many failures in a row, without a packet between them, are the end of the file.
constexpr int kMaxFailures = 100;

bool shows_motion(const AVStream& stream) {
  constexpr int kStills = AV_DISPOSITION_ATTACHED_PIC | AV_DISPOSITION_TIMED_THUMBNAILS;
  return stream.codecpar->codec_type == AVMEDIA_TYPE_VIDEO && (stream.disposition & kStills) == 0;
}

bool preferred(const AVStream& a, const AVStream& b) {
  const bool default_a = (a.disposition & AV_DISPOSITION_DEFAULT) != 0;
  const bool default_b = (b.disposition & AV_DISPOSITION_DEFAULT) != 0;
  if (default_a != default_b) return default_a;
  return int64_t{a.codecpar->width} * a.codecpar->height >
         int64_t{b.codecpar->width} * b.codecpar->height;
}

std::span<AVStream*> streams_of(AVFormatContext& context) {
  return {context.streams, context.nb_streams};
}

}  // namespace

VideoWatch::VideoWatch(const VideoLimits& limits, std::function<bool()> should_cancel)
    : max_packets_(limits.max_packets),
      max_wait_(limits.max_wait_s),
      should_cancel_(std::move(should_cancel)),
      start_(std::chrono::steady_clock::now()) {}

void VideoWatch::start() {
  start_ = std::chrono::steady_clock::now();
  n_packets_ = 0;
}

bool VideoWatch::expired() noexcept {
  if (reason_ != Reason::kNone) return true;
  bool cancelled = false;
  try {
    cancelled = should_cancel_ && should_cancel_();
  } catch (...) {
    cancelled = true;  // nothing may be thrown through a C library
  }
  if (cancelled) {
    reason_ = Reason::kCancelled;
  } else if (n_packets_ > max_packets_) {
    reason_ = Reason::kPackets;
  } else if (std::chrono::steady_clock::now() - start_ > max_wait_) {
    reason_ = Reason::kTime;
  }
  return reason_ != Reason::kNone;
}

void VideoWatch::check(const std::string& path) {
  if (!expired()) return;
  if (reason_ == Reason::kCancelled) {
    throw_error(ErrorCode::kCancelled, "[video] expected to read '{}', got cancelled", path);
  }
  if (reason_ == Reason::kPackets) {
    throw_error(
        ErrorCode::kResourceExhausted,
        "[video] expected the next frame or the end within {} packets, got neither in '{}'; "
        "try remuxing it",
        max_packets_, path);
  }
  throw_error(ErrorCode::kResourceExhausted,
              "[video] expected the next frame or the end within {} s, got neither in '{}'; try "
              "remuxing it, or a higher time limit",
              max_wait_.count(), path);
}

VideoFile::VideoFile(const std::string& path, const VideoLimits& limits,
                     std::function<bool()> should_cancel)
    : source_{InputFile(path, "video"), VideoWatch(limits, std::move(should_cancel))} {
  const VideoLog log;
  open();
  choose_stream();
}

int VideoFile::on_read(void* opaque, uint8_t* buffer, int n_bytes) {
  auto& source = *static_cast<Source*>(opaque);
  if (source.watch.expired()) return kAvExit;
  ssize_t n = 0;
  do {
    n = ::pread(source.file.fd(), buffer, static_cast<size_t>(n_bytes), source.offset);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return AVERROR(errno);
  if (n == 0) return kAvEof;
  source.offset += n;
  return static_cast<int>(n);
}

int64_t VideoFile::on_seek(void* opaque, int64_t offset, int whence) {
  auto& source = *static_cast<Source*>(opaque);
  whence &= ~AVSEEK_FORCE;
  if (whence == AVSEEK_SIZE) return source.file.size();
  if (whence == SEEK_CUR) offset += source.offset;
  if (whence == SEEK_END) offset += source.file.size();
  if (offset < 0) return AVERROR(EINVAL);
  source.offset = offset;
  return offset;
}

int VideoFile::on_open(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) {
  return kAvNotPermitted;  // a playlist or a reference to another file
}

void VideoFile::open() {
  auto* buffer = static_cast<uint8_t*>(checked_alloc(av_malloc(kIoBytes)));
  io_.reset(checked_alloc(
      avio_alloc_context(buffer, kIoBytes, /*write_flag=*/0, &source_, on_read, nullptr, on_seek)));
  const VideoLog log;
  const AVInputFormat* format = nullptr;
  const int probed = av_probe_input_buffer2(io_.get(), &format, "", nullptr, 0, 0);
  watch().check(path());
  if (probed < 0 || format == nullptr) {
    throw_error(ErrorCode::kUnsupported,
                "[video] expected one of the containers {}, got something else in '{}'",
                container_names(), path());
  }
  const char* name = container_name(*format);
  if (name == nullptr) {
    throw_error(ErrorCode::kUnsupported,
                "[video] expected one of the containers {}, got {} in '{}'; try converting it",
                container_names(), format->name, path());
  }
  container_ = name;

  AVFormatContext* context = checked_alloc(avformat_alloc_context());
  context->pb = io_.get();
  context->io_open = on_open;
  // Frees the context when it fails.
  const int opened = avformat_open_input(&context, "", format, nullptr);
  watch().check(path());
  if (opened == kAvNoMemory) {
    throw_error(ErrorCode::kResourceExhausted,
                "[video] expected a {} header that fits memory, got an index of more than {} bytes "
                "in '{}'",
                container_, kMaxVideoAllocation, path());
  }
  if (opened < 0) {
    throw_error(ErrorCode::kCorrupt,
                "[video] expected a readable {} header, got '{}' ({}); try a complete copy of the "
                "file",
                container_, path(), log.reason(opened));
  }
  context_.reset(context);
}

void VideoFile::choose_stream() {
  const auto count = [&] {
    return std::count_if(context_->streams, context_->streams + context_->nb_streams,
                         [](const AVStream* stream) { return shows_motion(*stream); });
  };
  const PacketPtr packet(checked_alloc(av_packet_alloc()));
  const bool streams_follow = (context_->ctx_flags & AVFMTCTX_NOHEADER) != 0;
  for (int i = 0; count() == 0 && streams_follow && i < kPacketsUntilStreams; ++i) {
    av_packet_unref(packet.get());
    const int result = av_read_frame(context_.get(), packet.get());
    watch().check(path());
    if (result < 0) break;
  }
  for (AVStream* stream : streams_of(*context_)) {
    if (!shows_motion(*stream)) continue;
    ++n_video_streams_;
    if (stream_ == nullptr || preferred(*stream, *stream_)) stream_ = stream;
  }
  if (stream_ == nullptr) {
    throw_error(ErrorCode::kUnsupported,
                "[video] expected a film, got a {} file without a video stream in '{}'", container_,
                path());
  }
  const AVRational tick = stream_->time_base;
  if (tick.num <= 0 || tick.den <= 0) {
    throw_error(ErrorCode::kCorrupt, "[video] expected a clock, got ticks of {} / {} s in '{}'",
                tick.num, tick.den, path());
  }
  const int n_indexed = avformat_index_get_entries_count(stream_);
  if (n_indexed > size_bytes()) {
    throw_error(
        ErrorCode::kCorrupt,
        "[video] expected an index of at most a frame a byte, got {} frames in the {} bytes "
        "of '{}'",
        n_indexed, size_bytes(), path());
  }
  discard_others();
}

void VideoFile::discard_others() {
  for (; n_streams_seen_ < context_->nb_streams; ++n_streams_seen_) {
    AVStream* stream = context_->streams[n_streams_seen_];
    if (stream != stream_) stream->discard = AVDISCARD_ALL;
  }
}

bool VideoFile::read(AVPacket& packet) {
  int n_failures = 0;
  while (n_failures < kMaxFailures) {
    av_packet_unref(&packet);
    const int result = av_read_frame(context_.get(), &packet);
    watch().count_packet();
    watch().check(path());
    discard_others();
    if (result == kAvEof) break;
    if (result == kAvNoMemory) {
      throw_error(ErrorCode::kResourceExhausted,
                  "[video] expected packets of at most {} bytes, got a larger one in '{}'",
                  kMaxVideoAllocation, path());
    }
    if (result < 0) {
      ++n_failures;
      continue;
    }
    n_damaged_ += n_failures;
    n_failures = 0;
    if (packet.stream_index != stream_->index) continue;
    const bool timed = packet.pts != kAvNoTimestamp && packet.dts != kAvNoTimestamp;
    if (timed && container_ == "mov" && (packet.flags & AV_PKT_FLAG_KEY) != 0) {
      index_delay_s_ = std::max(index_delay_s_, seconds_of(packet.pts - packet.dts));
    }
    return true;
  }
  n_damaged_ += n_failures > 0 ? 1 : 0;
  return false;
}

bool VideoFile::seek(double time_s) {
  const VideoLog log;
  const int result = av_seek_frame(context_.get(), stream_->index,
                                   ticks_of(time_s - index_delay_s_), AVSEEK_FLAG_BACKWARD);
  watch().check(path());
  return result >= 0;
}

std::optional<double> VideoFile::key_frame_before(double time_s) {
  const int index =
      av_index_search_timestamp(stream_, ticks_of(time_s - index_delay_s_), AVSEEK_FLAG_BACKWARD);
  const AVIndexEntry* entry = index < 0 ? nullptr : avformat_index_get_entry(stream_, index);
  if (entry == nullptr) return std::nullopt;
  return seconds_of(entry->timestamp) + index_delay_s_;
}

int64_t VideoFile::ticks_of(double time_s) {
  constexpr double kMost = 1LL << 60;
  return static_cast<int64_t>(
      std::clamp(std::floor(time_s / seconds(stream_->time_base)), -kMost, kMost));
}

}  // namespace plateau::media

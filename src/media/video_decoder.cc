// Tested by video_test.cc and video_hostile_test.cc.
#include "media/video_decoder.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "media/video_formats.h"
#include "media/video_log.h"

namespace plateau::media {
namespace {

// A decoder that is being emptied and fails this often in a row is empty.
constexpr int kMaxFailures = 100;

/// One buffer of a frame, and the count that it stands in.
struct CountedBuffer {
  AVBufferRef* buffer;
  std::shared_ptr<FrameBytes> count;
};

void on_release(void* opaque, uint8_t* /*data*/) {
  auto* counted = static_cast<CountedBuffer*>(opaque);
  counted->count->now -= static_cast<int64_t>(counted->buffer->size);
  av_buffer_unref(&counted->buffer);
  delete counted;
}

void add(FrameBytes& count, int64_t n_bytes) {
  const int64_t now = count.now += n_bytes;
  int64_t before = count.peak;
  while (now > before && !count.peak.compare_exchange_weak(before, now)) {
  }
}

void check_pixels(int width, int height, int64_t max_pixels, const std::string& path) {
  if (width < 0 || height < 0) {
    throw_error(ErrorCode::kCorrupt, "[video] expected frames with pixels, got {} x {} in '{}'",
                width, height, path);
  }
  if (int64_t{width} * height > max_pixels) {
    throw_error(ErrorCode::kResourceExhausted,
                "[video] expected frames of at most {} pixels, got {} x {} in '{}'; try a smaller "
                "film or a higher pixel limit",
                max_pixels, width, height, path);
  }
}

// Decoders work on sides rounded up to blocks, and hold those against the cap.
int64_t with_room_for_blocks(int64_t max_pixels) {
  constexpr int64_t kRoom = int64_t{1} << 20;
  return max_pixels + max_pixels / 4 + kRoom;
}

}  // namespace

VideoDecoder::VideoDecoder(VideoFile& file, const VideoLimits& limits, int n_threads)
    : file_(file), max_pixels_(limits.max_pixels), packet_(checked_alloc(av_packet_alloc())) {
  const VideoLog log;
  const AVStream& stream = file.stream();
  check_pixels(stream.codecpar->width, stream.codecpar->height, max_pixels_, file.path());
  const AVCodec& codec = find_decoder(stream.codecpar->codec_id, file.path());
  context_.reset(checked_alloc(avcodec_alloc_context3(&codec)));
  int result = avcodec_parameters_to_context(context_.get(), stream.codecpar);
  context_->pkt_timebase = stream.time_base;
  context_->max_pixels = with_room_for_blocks(max_pixels_);
  context_->thread_count = n_threads;
  context_->err_recognition = AV_EF_CRCCHECK;
  context_->opaque = &frame_bytes_;
  context_->get_buffer2 = on_get_buffer;
  if (result >= 0) result = avcodec_open2(context_.get(), &codec, nullptr);
  if (result < 0) {
    throw_error(result == kAvNoMemory ? ErrorCode::kResourceExhausted : ErrorCode::kCorrupt,
                "[video] expected a {} stream that can be decoded, got an error in '{}' ({})",
                codec.name, file.path(), log.reason(result));
  }
}

int VideoDecoder::on_get_buffer(AVCodecContext* context, AVFrame* frame, int flags) {
  const int result = avcodec_default_get_buffer2(context, frame, flags);
  if (result < 0) return result;
  const auto& count = *static_cast<std::shared_ptr<FrameBytes>*>(context->opaque);
  for (AVBufferRef*& buffer : frame->buf) {
    if (buffer == nullptr) break;
    auto* counted = new (std::nothrow) CountedBuffer{buffer, count};
    AVBufferRef* wrapped =
        counted == nullptr ? nullptr
                           : av_buffer_create(buffer->data, buffer->size, on_release, counted, 0);
    if (wrapped == nullptr) {
      delete counted;
      av_frame_unref(frame);
      return kAvNoMemory;
    }
    add(*count, static_cast<int64_t>(buffer->size));
    buffer = wrapped;
  }
  return 0;
}

void VideoDecoder::count_damage(int code) {
  if (code == kAvNoMemory) {
    throw_error(ErrorCode::kResourceExhausted,
                "[video] expected frames that fit memory, got more than {} bytes in one of '{}'",
                kMaxVideoAllocation, file_.path());
  }
  ++counts_.n_damaged;
  if (first_damage_.empty()) first_damage_ = VideoLog().reason(code);
}

// Most decoders patch up what is damaged and tell nobody but the log. Before the first frame after
// the start or a jump they complain for a good reason: frames that they would need are left out.
void VideoDecoder::count_complaints(const VideoLog& log) {
  const bool complained = log.n_errors() > n_errors_seen_;
  if (settled_ && complained && counts_.n_damaged == n_damaged_seen_) count_damage(kAvInvalidData);
  n_errors_seen_ = log.n_errors();
  n_damaged_seen_ = counts_.n_damaged;
}

bool VideoDecoder::feed() {
  if (draining_) return false;
  int result = 0;
  if (file_.read(*packet_)) {
    const int64_t ticks = packet_->pts != kAvNoTimestamp ? packet_->pts : packet_->dts;
    if (ticks != kAvNoTimestamp) {
      const double time_s = file_.seconds_of(ticks);
      position_s_ = first_packet_s_.has_value() ? std::max(position_s_, time_s) : time_s;
      // A packet to be discarded is decoded for the sake of those after it, and not shown.
      const bool shown = (packet_->flags & AV_PKT_FLAG_DISCARD) == 0;
      if (shown && !first_packet_s_.has_value()) first_packet_s_ = time_s;
    }
    if ((packet_->flags & AV_PKT_FLAG_CORRUPT) != 0) count_damage(kAvInvalidData);
    result = avcodec_send_packet(context_.get(), packet_.get());
    av_packet_unref(packet_.get());
  } else {
    draining_ = true;
    result = avcodec_send_packet(context_.get(), nullptr);
  }
  if (result < 0) count_damage(result);
  return true;
}

double VideoDecoder::time_of(const AVFrame& frame) {
  const double frame_s = std::max(0.0, file_.seconds_of(frame.pkt_duration));
  const double expected_s = last_s_.has_value() ? *last_s_ + frame_s : position_s_;
  const bool timed = frame.best_effort_timestamp != kAvNoTimestamp;
  double time_s = timed ? file_.seconds_of(frame.best_effort_timestamp) : expected_s;
  if (!timed || (last_s_.has_value() && time_s <= *last_s_)) {
    ++counts_.n_disordered;
    time_s = std::max(time_s, last_s_.value_or(time_s));
  }
  return time_s;
}

std::optional<double> VideoDecoder::next(AVFrame& frame) {
  const VideoLog log;
  file_.watch().start();
  n_errors_seen_ = 0;
  int n_failures = 0;
  while (n_failures < kMaxFailures) {
    const int result = avcodec_receive_frame(context_.get(), &frame);
    if (result == kAvEof) break;
    if (result == kAvAgain) {
      if (!feed()) break;
      count_complaints(log);
      continue;
    }
    if (result < 0) {
      count_damage(result);
      n_failures += draining_ ? 1 : 0;
      continue;
    }
    ++counts_.n_decoded;
    check_pixels(frame.width, frame.height, max_pixels_, file_.path());
    const bool patched =
        frame.decode_error_flags != 0 || (frame.flags & AV_FRAME_FLAG_CORRUPT) != 0;
    if (patched) count_damage(kAvInvalidData);
    count_complaints(log);
    settled_ = true;
    const double time_s = time_of(frame);
    if (leaves_out_early_ && first_packet_s_.has_value() && time_s < *first_packet_s_) continue;
    last_s_ = time_s;
    return time_s;
  }
  return std::nullopt;
}

void VideoDecoder::restart() {
  avcodec_flush_buffers(context_.get());
  first_packet_s_.reset();
  last_s_.reset();
  draining_ = false;
  settled_ = false;
  leaves_out_early_ = true;
}

}  // namespace plateau::media

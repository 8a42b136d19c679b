// Owners of libav objects, and its macros as constants: what needs a cast or a C header stays here.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

#include <cerrno>
#include <memory>

namespace plateau::media {

struct FormatContextClose {
  void operator()(AVFormatContext* context) const { avformat_close_input(&context); }
};
struct CodecContextFree {
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
};
struct PacketFree {
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
};
struct FrameFree {
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
};
struct SwsFree {
  void operator()(SwsContext* context) const { sws_freeContext(context); }
};
struct IoFree {
  void operator()(AVIOContext* io) const {
    av_freep(&io->buffer);  // the library may have replaced the one it was given
    avio_context_free(&io);
  }
};
struct AvFree {
  void operator()(void* memory) const { av_free(memory); }
};

using FormatContextPtr = std::unique_ptr<AVFormatContext, FormatContextClose>;
using CodecContextPtr = std::unique_ptr<AVCodecContext, CodecContextFree>;
using PacketPtr = std::unique_ptr<AVPacket, PacketFree>;
using FramePtr = std::unique_ptr<AVFrame, FrameFree>;
using SwsPtr = std::unique_ptr<SwsContext, SwsFree>;
using IoPtr = std::unique_ptr<AVIOContext, IoFree>;
using AvBytesPtr = std::unique_ptr<uint8_t, AvFree>;

inline constexpr int kAvEof = AVERROR_EOF;
inline constexpr int kAvExit = AVERROR_EXIT;
inline constexpr int kAvInvalidData = AVERROR_INVALIDDATA;
inline constexpr int kAvAgain = AVERROR(EAGAIN);
inline constexpr int kAvNoMemory = AVERROR(ENOMEM);
inline constexpr int kAvNotPermitted = AVERROR(EPERM);
inline constexpr int64_t kAvNoTimestamp = INT64_MIN;  // AV_NOPTS_VALUE

/// Seconds per tick.
inline double seconds(AVRational time_base) {
  return static_cast<double>(time_base.num) / time_base.den;
}

/// REQUIRES: not null; an allocation of libav that failed is out of memory.
template <typename Pointer>
Pointer checked_alloc(Pointer pointer) {
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

}  // namespace plateau::media

// Tested by film_scene_test.cc.
#include "eval/film_writer.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
}

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/check.h"

namespace plateau::eval {
namespace {

constexpr int kFramesPerKeyFrame = 10;
constexpr int kQuantizer = 2;  // of 31; lower is better

struct Deleter {
  void operator()(AVFormatContext* context) const {
    if (context->pb != nullptr) avio_closep(&context->pb);
    avformat_free_context(context);
  }
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
  void operator()(SwsContext* context) const { sws_freeContext(context); }
};
template <typename T>
using Owned = std::unique_ptr<T, Deleter>;

/// While it lives, FFmpeg prints nothing.
class QuietLog {
 public:
  QuietLog() : level_(av_log_get_level()) { av_log_set_level(AV_LOG_QUIET); }
  ~QuietLog() { av_log_set_level(level_); }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;

 private:
  int level_;
};

const char* muxer_of(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".mp4") return "mp4";
  if (extension == ".mkv") return "matroska";
  if (extension == ".avi") return "avi";
  throw_error(ErrorCode::kInvalidArgument,
              "[needle] expected a film named *.mp4, *.mkv or *.avi, got '{}'", path);
}

void check_side(const char* name, int64_t side) {
  if (side < kMinFrameSide || side > kMaxFrameSide) {
    throw_error(ErrorCode::kInvalidArgument,
                "[needle] expected a film's {} of {} to {} pixels, got {}", name, kMinFrameSide,
                kMaxFrameSide, side);
  }
}

}  // namespace

struct FilmWriter::Impl {
  explicit Impl(std::string file) : path(std::move(file)) {}

  void require(int code) const {
    if (code >= 0) return;
    std::array<char, AV_ERROR_MAX_STRING_SIZE> reason{};
    av_strerror(code, reason.data(), reason.size());
    throw_error(ErrorCode::kUnavailable, "[needle] cannot write '{}': {}", path, reason.data());
  }

  void open_encoder(int width, int height, int fps) {
    const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_MPEG4);
    if (codec == nullptr) {
      throw_error(ErrorCode::kUnavailable,
                  "[needle] expected an FFmpeg that writes MPEG-4 films, got one that does not");
    }
    stream = avformat_new_stream(context.get(), nullptr);
    encoder.reset(avcodec_alloc_context3(codec));
    PLATEAU_CHECK(stream != nullptr && encoder != nullptr);
    encoder->width = width;
    encoder->height = height;
    encoder->time_base = {1, fps};
    encoder->framerate = {fps, 1};
    encoder->pix_fmt = AV_PIX_FMT_YUV420P;
    encoder->colorspace = AVCOL_SPC_SMPTE170M;  // BT.601
    encoder->color_range = AVCOL_RANGE_MPEG;
    encoder->gop_size = kFramesPerKeyFrame;
    encoder->max_b_frames = 0;
    encoder->flags |= AV_CODEC_FLAG_QSCALE | AV_CODEC_FLAG_BITEXACT;
    encoder->global_quality = kQuantizer * FF_QP2LAMBDA;
    encoder->thread_count = 1;  // more would change the bytes
    if ((context->oformat->flags & AVFMT_GLOBALHEADER) != 0) {
      encoder->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    }
    require(avcodec_open2(encoder.get(), codec, nullptr));
    require(avcodec_parameters_from_context(stream->codecpar, encoder.get()));
    stream->time_base = encoder->time_base;
    stream->avg_frame_rate = encoder->framerate;
  }

  void open_frame() {
    frame.reset(av_frame_alloc());
    packet.reset(av_packet_alloc());
    PLATEAU_CHECK(frame != nullptr && packet != nullptr);
    frame->format = encoder->pix_fmt;
    frame->width = encoder->width;
    frame->height = encoder->height;
    frame->colorspace = encoder->colorspace;
    frame->color_range = encoder->color_range;
    require(av_frame_get_buffer(frame.get(), 0));
    scaler.reset(sws_getContext(encoder->width, encoder->height, AV_PIX_FMT_RGB24, encoder->width,
                                encoder->height, encoder->pix_fmt,
                                SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INP | SWS_BITEXACT,
                                nullptr, nullptr, nullptr));
    PLATEAU_CHECK(scaler != nullptr);
    const int* matrix = sws_getCoefficients(SWS_CS_ITU601);
    sws_setColorspaceDetails(scaler.get(), matrix, /*srcRange=*/1, matrix, /*dstRange=*/0,
                             /*brightness=*/0, /*contrast=*/1 << 16, /*saturation=*/1 << 16);
  }

  /// Null: no more frames.
  void encode(const AVFrame* next) {
    require(avcodec_send_frame(encoder.get(), next));
    while (true) {
      const int code = avcodec_receive_packet(encoder.get(), packet.get());
      if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return;
      require(code);
      packet->stream_index = stream->index;
      packet->duration = 1;  // so that the last frame has a length, too
      av_packet_rescale_ts(packet.get(), encoder->time_base, stream->time_base);
      require(av_interleaved_write_frame(context.get(), packet.get()));
    }
  }

  std::string path;
  Owned<AVFormatContext> context;
  Owned<AVCodecContext> encoder;
  Owned<AVFrame> frame;
  Owned<AVPacket> packet;
  Owned<SwsContext> scaler;
  AVStream* stream = nullptr;  // the context's
  int64_t n_frames = 0;
  bool is_open = false;
};

FilmWriter::FilmWriter(const std::string& path, int64_t width, int64_t height, int fps)
    : impl_(std::make_unique<Impl>(path)) {
  const char* muxer = muxer_of(path);
  check_side("width", width);
  check_side("height", height);
  if (fps < 1) {
    throw_error(ErrorCode::kInvalidArgument,
                "[needle] expected at least 1 frame a second of film, got {}", fps);
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored)) {
    throw_error(ErrorCode::kNotFound, "[needle] expected a folder '{}', got none", folder.string());
  }
  const QuietLog quiet;
  AVFormatContext* context = nullptr;
  // A name with its protocol, so that one like "a:b" is only a name.
  const std::string url = "file:" + path;
  impl_->require(avformat_alloc_output_context2(&context, nullptr, muxer, url.c_str()));
  impl_->context.reset(context);
  context->flags |= AVFMT_FLAG_BITEXACT;
  impl_->open_encoder(static_cast<int>(width), static_cast<int>(height), fps);
  impl_->open_frame();
  impl_->require(avio_open(&context->pb, url.c_str(), AVIO_FLAG_WRITE));
  impl_->is_open = true;
  try {
    impl_->require(avformat_write_header(context, nullptr));
  } catch (...) {
    std::filesystem::remove(path, ignored);
    throw;
  }
}

FilmWriter::~FilmWriter() {
  if (!impl_->is_open) return;
  impl_->context.reset();
  std::error_code ignored;
  std::filesystem::remove(impl_->path, ignored);
}

void FilmWriter::add(const RgbView& frame) {
  Impl& impl = *impl_;
  PLATEAU_CHECK(impl.is_open && frame.width == impl.encoder->width &&
                frame.height == impl.encoder->height);
  const QuietLog quiet;
  impl.require(av_frame_make_writable(impl.frame.get()));
  const std::array<const uint8_t*, 1> planes = {frame.pixels};
  const std::array<int, 1> strides = {static_cast<int>(frame.stride_bytes)};
  sws_scale(impl.scaler.get(), planes.data(), strides.data(), 0, impl.encoder->height,
            impl.frame->data, impl.frame->linesize);
  impl.frame->pts = impl.n_frames++;
  impl.encode(impl.frame.get());
}

void FilmWriter::finish() {
  Impl& impl = *impl_;
  PLATEAU_CHECK(impl.is_open && impl.n_frames > 0);
  const QuietLog quiet;
  impl.encode(nullptr);
  impl.require(av_write_trailer(impl.context.get()));
  // What was buffered is written only now.
  avio_flush(impl.context->pb);
  impl.require(impl.context->pb->error);
  impl.require(avio_closep(&impl.context->pb));
  impl.is_open = false;
}

}  // namespace plateau::eval

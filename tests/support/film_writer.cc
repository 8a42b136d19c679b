#include "support/film_writer.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

#include <algorithm>
#include <array>
#include <memory>

#include "base/check.h"

namespace plateau::test {
namespace {

constexpr int kCols = 5;
constexpr int kRows = 4;
constexpr int kSoundRate = 8000;

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

void check(bool ok, const char* what, int code = 0) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> reason{};
  av_strerror(code, reason.data(), reason.size());
  if (!ok) throw_error(ErrorCode::kInternal, "[film_writer] {} failed ({})", what, reason.data());
}

/// While it lives: encoders are talkative. Code under test has to see to its own silence.
class QuietLog {
 public:
  QuietLog() : level_(av_log_get_level()) { av_log_set_level(AV_LOG_QUIET); }
  ~QuietLog() { av_log_set_level(level_); }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;

 private:
  int level_;
};

class Writer {
 public:
  Writer(const std::string& path, const FilmSpec& spec, bool variable)
      : spec_(spec), variable_(variable) {
    AVFormatContext* context = nullptr;
    // A name with its protocol, so that one like "-" or "a:b" is only a name.
    const std::string url = "file:" + path;
    const int made =
        avformat_alloc_output_context2(&context, nullptr, spec.container.c_str(), url.c_str());
    check(made >= 0, "making the muxer", made);
    context_.reset(context);
    if (spec.video) open_video();
    if (spec.sound) open_sound();
    AVDictionary* options = nullptr;
    for (const auto& [name, value] : spec.muxer_options) {
      av_dict_set(&options, name.c_str(), value.c_str(), 0);
    }
    av_dict_set(&options, "fflags", "+bitexact", 0);
    const int opened = avio_open(&context_->pb, url.c_str(), AVIO_FLAG_WRITE);
    check(opened >= 0, "opening the file", opened);
    const int written = avformat_write_header(context_.get(), &options);
    av_dict_free(&options);
    check(written >= 0, "writing the header", written);
  }

  void write(int64_t ticks, const FilmCanvas& canvas) {
    check(av_frame_make_writable(frame_.get()) >= 0, "making the frame writable");
    const std::array<const uint8_t*, 1> planes{canvas.pixels.data()};
    const std::array<int, 1> strides{canvas.width * canvas.n_channels};
    sws_scale(scaler_.get(), planes.data(), strides.data(), 0, canvas.height, frame_->data,
              frame_->linesize);
    frame_->pts = ticks;
    encode(frame_.get());
    if (spec_.sound) write_silence(ticks);
  }

  void finish() {
    if (spec_.video) encode(nullptr);
    check(av_write_trailer(context_.get()) >= 0, "writing the trailer");
  }

  void write_silence(int64_t ticks) {
    check(av_new_packet(packet_.get(), 2 * 160) >= 0, "making a packet");
    std::fill_n(packet_->data, packet_->size, uint8_t{0});
    packet_->pts = packet_->dts = n_samples_;
    packet_->duration = 160;
    packet_->stream_index = sound_->index;
    packet_->flags = AV_PKT_FLAG_KEY;
    n_samples_ = std::max(n_samples_ + 160, ticks * kSoundRate * spec_.tick_num / spec_.tick_den);
    av_packet_rescale_ts(packet_.get(), AVRational{1, kSoundRate}, sound_->time_base);
    const int written = av_interleaved_write_frame(context_.get(), packet_.get());
    check(written >= 0, "writing sound", written);
  }

 private:
  void open_video() {
    const AVCodec* codec = avcodec_find_encoder_by_name(spec_.encoder.c_str());
    check(codec != nullptr, "finding the encoder");
    stream_ = avformat_new_stream(context_.get(), nullptr);
    encoder_.reset(avcodec_alloc_context3(codec));
    encoder_->width = spec_.width;
    encoder_->height = spec_.height;
    encoder_->time_base = {spec_.tick_num, spec_.tick_den};
    encoder_->framerate = {spec_.tick_den, spec_.tick_num};
    encoder_->pix_fmt = spec_.pixel_format.empty() ? codec->pix_fmts[0]
                                                   : av_get_pix_fmt(spec_.pixel_format.c_str());
    encoder_->gop_size = spec_.gop;
    encoder_->max_b_frames = spec_.b_frames;
    encoder_->flags |= AV_CODEC_FLAG_QSCALE | AV_CODEC_FLAG_BITEXACT;
    encoder_->global_quality = spec_.quantizer * FF_QP2LAMBDA;
    encoder_->strict_std_compliance = FF_COMPLIANCE_EXPERIMENTAL;
    encoder_->thread_count = 1;
    encoder_->sample_aspect_ratio = {spec_.aspect_num, spec_.aspect_den};
    stream_->sample_aspect_ratio = encoder_->sample_aspect_ratio;
    if (spec_.full_range && spec_.tagged) encoder_->color_range = AVCOL_RANGE_JPEG;
    if (spec_.matrix == "bt601" && spec_.tagged) encoder_->colorspace = AVCOL_SPC_SMPTE170M;
    if (spec_.matrix == "bt709" && spec_.tagged) encoder_->colorspace = AVCOL_SPC_BT709;
    if ((context_->oformat->flags & AVFMT_GLOBALHEADER) != 0) {
      encoder_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    }
    AVDictionary* options = nullptr;
    for (const auto& [name, value] : spec_.encoder_options) {
      av_dict_set(&options, name.c_str(), value.c_str(), 0);
    }
    const int opened = avcodec_open2(encoder_.get(), codec, &options);
    av_dict_free(&options);
    check(opened >= 0, "opening the encoder", opened);
    avcodec_parameters_from_context(stream_->codecpar, encoder_.get());
    stream_->time_base = encoder_->time_base;
    if (!variable_) stream_->avg_frame_rate = encoder_->framerate;
    if (spec_.rotation != 0 || spec_.mirror) {
      auto* matrix = reinterpret_cast<int32_t*>(
          av_stream_new_side_data(stream_, AV_PKT_DATA_DISPLAYMATRIX, 9 * sizeof(int32_t)));
      av_display_rotation_set(matrix, spec_.rotation);  // clockwise, whatever its comment says
      if (spec_.mirror) av_display_matrix_flip(matrix, 1, 0);
    }
    frame_.reset(av_frame_alloc());
    frame_->format = encoder_->pix_fmt;
    frame_->width = spec_.width;
    frame_->height = spec_.height;
    frame_->color_range = encoder_->color_range;
    frame_->colorspace = encoder_->colorspace;
    check(av_frame_get_buffer(frame_.get(), 0) >= 0, "making a frame");
    packet_.reset(av_packet_alloc());
    open_scaler();
  }

  void open_scaler() {
    const AVPixFmtDescriptor* format = av_pix_fmt_desc_get(encoder_->pix_fmt);
    const bool alpha = (format->flags & AV_PIX_FMT_FLAG_ALPHA) != 0;
    scaler_.reset(sws_getContext(
        spec_.width, spec_.height, alpha ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24, spec_.width,
        spec_.height, encoder_->pix_fmt, SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INP,
        nullptr, nullptr, nullptr));
    check(scaler_ != nullptr, "making the converter");
    sws_setColorspaceDetails(
        scaler_.get(), sws_getCoefficients(SWS_CS_DEFAULT), 1,
        sws_getCoefficients(spec_.matrix == "bt709" ? SWS_CS_ITU709 : SWS_CS_ITU601),
        spec_.full_range ? 1 : 0, 0, 1 << 16, 1 << 16);
  }

  void open_sound() {
    sound_ = avformat_new_stream(context_.get(), nullptr);
    sound_->codecpar->codec_type = AVMEDIA_TYPE_AUDIO;
    sound_->codecpar->codec_id = AV_CODEC_ID_PCM_S16LE;
    sound_->codecpar->sample_rate = kSoundRate;
    sound_->codecpar->bits_per_coded_sample = 16;
    sound_->codecpar->block_align = 2;
    sound_->codecpar->bit_rate = 16 * kSoundRate;
    sound_->codecpar->format = AV_SAMPLE_FMT_S16;
    av_channel_layout_default(&sound_->codecpar->ch_layout, 1);
    sound_->time_base = {1, kSoundRate};
    if (packet_ == nullptr) packet_.reset(av_packet_alloc());
  }

  void encode(const AVFrame* frame) {
    check(avcodec_send_frame(encoder_.get(), frame) >= 0, "encoding");
    while (avcodec_receive_packet(encoder_.get(), packet_.get()) >= 0) {
      packet_->stream_index = stream_->index;
      if (packet_->duration == 0 && spec_.container != "matroska") packet_->duration = 1;
      av_packet_rescale_ts(packet_.get(), encoder_->time_base, stream_->time_base);
      const int written = av_interleaved_write_frame(context_.get(), packet_.get());
      check(written >= 0, "writing a packet", written);
    }
  }

  const FilmSpec& spec_;
  bool variable_;  // frames are not one tick apart
  Owned<AVFormatContext> context_;
  Owned<AVCodecContext> encoder_;
  Owned<AVFrame> frame_;
  Owned<AVPacket> packet_;
  Owned<SwsContext> scaler_;
  AVStream* stream_ = nullptr;
  AVStream* sound_ = nullptr;
  int64_t n_samples_ = 0;
};

}  // namespace

void write_film(const std::string& path, const FilmSpec& spec, int64_t n_frames,
                const DrawFrame& draw, const std::function<int64_t(int64_t)>& ticks) {
  const QuietLog quiet;
  Writer writer(path, spec, static_cast<bool>(ticks));
  FilmCanvas canvas{spec.width, spec.height, 3, {}};
  if (!spec.pixel_format.empty()) {
    const AVPixFmtDescriptor* format =
        av_pix_fmt_desc_get(av_get_pix_fmt(spec.pixel_format.c_str()));
    check(format != nullptr, "finding the pixel format");
    if ((format->flags & AV_PIX_FMT_FLAG_ALPHA) != 0) canvas.n_channels = 4;
  }
  canvas.pixels.resize(static_cast<size_t>(canvas.n_channels) * static_cast<size_t>(spec.width) *
                       static_cast<size_t>(spec.height));
  for (int64_t i = 0; i < n_frames; ++i) {
    const int64_t due = ticks ? ticks(i) : i;
    if (spec.video) {
      draw(i, canvas);
      writer.write(due, canvas);
    } else {
      writer.write_silence(due);
    }
  }
  writer.finish();
}

bool has_encoder(const std::string& name) {
  return avcodec_find_encoder_by_name(name.c_str()) != nullptr;
}

void draw_clock(int64_t number, FilmCanvas& canvas) {
  for (int y = 0; y < canvas.height; ++y) {
    for (int x = 0; x < canvas.width; ++x) {
      const int bit = y * kRows / canvas.height * kCols + x * kCols / canvas.width;
      std::fill_n(canvas.at(x, y), canvas.n_channels,
                  static_cast<uint8_t>((number >> bit & 1) != 0 ? 255 : 0));
      if (canvas.n_channels == 4) canvas.at(x, y)[3] = 255;
    }
  }
}

int64_t read_clock(const std::vector<uint8_t>& rgb, int width, int height) {
  constexpr int kBlack = 80;
  constexpr int kWhite = 175;
  int64_t number = 0;
  for (int bit = 0; bit < kCols * kRows; ++bit) {
    const int x = (2 * (bit % kCols) + 1) * width / (2 * kCols);
    const int y = (2 * (bit / kCols) + 1) * height / (2 * kRows);
    const int green =
        rgb[(static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)) * 3 + 1];
    if (green > kBlack && green < kWhite) return -1;
    if (green >= kWhite) number |= int64_t{1} << bit;
  }
  return number;
}

}  // namespace plateau::test

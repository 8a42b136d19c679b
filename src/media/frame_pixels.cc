// Tested by video_pixels_test.cc.
#include "media/frame_pixels.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "media/resampler.h"
#include "media/video_log.h"
#include "media/video_memory.h"

namespace plateau::media {
namespace {

constexpr int kAlignment = 64;
constexpr int kHighDefinitionLines = 720;

/// The matrix that turns the frame's samples into RGB, as libswscale numbers them.
int matrix_of(const AVFrame& frame) {
  switch (frame.colorspace) {
    case AVCOL_SPC_BT709:
      return SWS_CS_ITU709;
    case AVCOL_SPC_FCC:
      return SWS_CS_FCC;
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M:
      return SWS_CS_ITU601;
    case AVCOL_SPC_SMPTE240M:
      return SWS_CS_SMPTE240M;
    case AVCOL_SPC_BT2020_NCL:
    case AVCOL_SPC_BT2020_CL:
      return SWS_CS_BT2020;
    default:
      return frame.height >= kHighDefinitionLines ? SWS_CS_ITU709 : SWS_CS_ITU601;
  }
}

/// yuvj formats are full range by name; they are read as their plain forms.
AVPixelFormat plain_format(int format, bool& full_range) {
  switch (format) {
    case AV_PIX_FMT_YUVJ420P:
      full_range = true;
      return AV_PIX_FMT_YUV420P;
    case AV_PIX_FMT_YUVJ422P:
      full_range = true;
      return AV_PIX_FMT_YUV422P;
    case AV_PIX_FMT_YUVJ444P:
      full_range = true;
      return AV_PIX_FMT_YUV444P;
    case AV_PIX_FMT_YUVJ440P:
      full_range = true;
      return AV_PIX_FMT_YUV440P;
    case AV_PIX_FMT_YUVJ411P:
      full_range = true;
      return AV_PIX_FMT_YUV411P;
    default:
      return static_cast<AVPixelFormat>(format);
  }
}

/// One RGBA pixel over white, rounded as libvips rounds pictures.
void put_on_white(const uint8_t* rgba, uint8_t* rgb) {
  constexpr int kMost = 255;
  const int alpha = rgba[3];
  for (int c = 0; c < 3; ++c) {
    rgb[c] = static_cast<uint8_t>((rgba[c] * alpha + kMost * (kMost - alpha)) / kMost);
  }
}

/// Upright rows of a stored frame.
class UprightRows {
 public:
  UprightRows(const uint8_t* pixels, int row_bytes, bool alpha, const VideoGeometry& geometry)
      : pixels_(pixels), row_bytes_(row_bytes), pixel_(alpha ? 4 : 3), geometry_(geometry) {
    row_.resize(static_cast<size_t>(width()) * 3);
  }

  int width() const {
    return geometry_.transpose ? geometry_.stored_height : geometry_.stored_width;
  }
  int height() const {
    return geometry_.transpose ? geometry_.stored_width : geometry_.stored_height;
  }

  /// [width * 3], valid until the next call.
  const uint8_t* row(int y) {
    const int n = width();
    const int line = geometry_.mirror_y ? height() - 1 - y : y;
    // First pixel and step, both in bytes, of the stored row or column that becomes this row.
    ptrdiff_t start = 0;
    ptrdiff_t step = 0;
    if (geometry_.transpose) {
      start = static_cast<ptrdiff_t>(line) * pixel_;
      step = row_bytes_;
    } else {
      start = static_cast<ptrdiff_t>(line) * row_bytes_;
      step = pixel_;
    }
    if (geometry_.mirror_x) {
      start += (n - 1) * step;
      step = -step;
    } else if (step == 3) {
      return pixels_ + start;
    }
    const uint8_t* from = pixels_ + start;
    uint8_t* to = row_.data();
    for (int x = 0; x < n; ++x, from += step, to += 3) {
      if (pixel_ == 4) {
        put_on_white(from, to);
      } else {
        std::copy_n(from, 3, to);
      }
    }
    return row_.data();
  }

 private:
  const uint8_t* pixels_;
  int row_bytes_;
  int pixel_;
  const VideoGeometry& geometry_;
  std::vector<uint8_t> row_;
};

}  // namespace

void FramePixels::prepare(const AVFrame& frame) {
  bool full_range = frame.color_range == AVCOL_RANGE_JPEG;
  const AVPixelFormat format = plain_format(frame.format, full_range);
  const int matrix = matrix_of(frame);
  if (scaler_ != nullptr && frame.width == width_ && frame.height == height_ &&
      frame.format == format_ && matrix == matrix_ && int{full_range} == range_) {
    return;
  }
  const AVPixFmtDescriptor* description = av_pix_fmt_desc_get(format);
  if (description == nullptr || sws_isSupportedInput(format) == 0) {
    throw_error(ErrorCode::kUnsupported,
                "[video] expected pixels that convert to RGB, got {} in '{}'; try converting it",
                description == nullptr ? "unknown ones" : description->name, path_);
  }
  alpha_ = (description->flags & AV_PIX_FMT_FLAG_ALPHA) != 0;
  const AVPixelFormat rgb_format = alpha_ ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24;
  // Bilinear chroma at full resolution and exact rounding: the plain conversions are faster, and
  // off by several steps.
  constexpr int kFlags =
      SWS_BILINEAR | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP | SWS_ACCURATE_RND | SWS_BITEXACT;
  scaler_.reset(sws_getContext(frame.width, frame.height, format, frame.width, frame.height,
                               rgb_format, kFlags, nullptr, nullptr, nullptr));
  if (scaler_ == nullptr) {
    throw_error(ErrorCode::kUnsupported,
                "[video] expected pixels that convert to RGB, got {} x {} of {} in '{}'",
                frame.width, frame.height, description->name, path_);
  }
  constexpr int kUnit = 1 << 16;  // contrast and saturation
  // Has no meaning, and fails, for formats that are RGB already.
  sws_setColorspaceDetails(scaler_.get(), sws_getCoefficients(matrix), int{full_range},
                           sws_getCoefficients(SWS_CS_DEFAULT), /*dstRange=*/1, 0, kUnit, kUnit);
  width_ = frame.width;
  height_ = frame.height;
  format_ = frame.format;
  matrix_ = matrix;
  range_ = int{full_range};
  row_bytes_ = (width_ * (alpha_ ? 4 : 3) + kAlignment - 1) / kAlignment * kAlignment;
  const size_t n_bytes = static_cast<size_t>(row_bytes_) * static_cast<size_t>(height_);
  rgb_.reset();
  // libswscale's vector code may write past the end of the last row.
  rgb_.reset(static_cast<uint8_t*>(checked_alloc(av_malloc(n_bytes + 2 * kAlignment))));
}

Rgb8 FramePixels::convert(const AVFrame& frame, const VideoGeometry& geometry, int width,
                          int height) {
  const VideoLog log;
  prepare(frame);
  const std::array<uint8_t*, 4> planes{rgb_.get(), nullptr, nullptr, nullptr};
  const std::array<int, 4> strides{row_bytes_, 0, 0, 0};
  const int n_rows = sws_scale(scaler_.get(), frame.data, frame.linesize, 0, frame.height,
                               planes.data(), strides.data());
  if (n_rows != frame.height) {
    throw_error(ErrorCode::kUnsupported,
                "[video] expected {} rows of RGB, got {} in '{}' ({}); try converting it",
                frame.height, n_rows, path_, log.reason(n_rows));
  }
  UprightRows upright(rgb_.get(), row_bytes_, alpha_, geometry);
  Resampler resampler(upright.width(), upright.height(), width, height);
  Rgb8 picture{width, height, {}};
  const size_t row_bytes = static_cast<size_t>(width) * 3;
  picture.pixels.resize(row_bytes * static_cast<size_t>(height));
  int in_y = 0;
  for (int y = 0; y < height; ++y) {
    while (!resampler.ready()) resampler.push(upright.row(in_y++));
    resampler.pop(picture.pixels.data() + static_cast<size_t>(y) * row_bytes);
  }
  buffer_bytes_ = static_cast<int64_t>(row_bytes_) * height_ +
                  resampler_bytes(upright.width(), upright.height(), width, height);
  return picture;
}

}  // namespace plateau::media

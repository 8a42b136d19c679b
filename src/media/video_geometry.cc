// Tested by video_pixels_test.cc.
#include "media/video_geometry.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace plateau::media {
namespace {

constexpr double kMaxAspect = 16.0;

/// [a b u; c d v; x y w] in fixed point: (x, y) goes to (a x + c y, b x + d y), y pointing down.
const uint8_t* display_matrix(AVStream& stream, const AVFrame& frame) {
  size_t n_bytes = 0;
  const uint8_t* matrix = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, &n_bytes);
  if (matrix != nullptr && n_bytes >= 9 * sizeof(int32_t)) return matrix;
  const AVFrameSideData* side = av_frame_get_side_data(&frame, AV_FRAME_DATA_DISPLAYMATRIX);
  return side != nullptr && side->size >= 9 * sizeof(int32_t) ? side->data : nullptr;
}

int32_t element(const uint8_t* matrix, size_t i) {
  int32_t value = 0;
  std::memcpy(&value, matrix + i * sizeof(value), sizeof(value));
  return value;
}

void turn(VideoGeometry& geometry, const uint8_t* matrix) {
  const double a = element(matrix, 0);
  const double b = element(matrix, 1);
  const double c = element(matrix, 3);
  const double d = element(matrix, 4);
  geometry.transpose = std::abs(b) + std::abs(c) > std::abs(a) + std::abs(d);
  geometry.mirror_x = (geometry.transpose ? c : a) < 0;
  geometry.mirror_y = (geometry.transpose ? b : d) < 0;
}

}  // namespace

VideoGeometry geometry_of(AVFormatContext& context, AVStream& stream, AVFrame& frame) {
  VideoGeometry geometry;
  geometry.stored_width = frame.width;
  geometry.stored_height = frame.height;
  const AVRational ratio = av_guess_sample_aspect_ratio(&context, &stream, &frame);
  double aspect = ratio.num > 0 && ratio.den > 0 ? seconds(ratio) : 1.0;
  if (aspect > kMaxAspect || aspect < 1 / kMaxAspect) {
    geometry.ignored_aspect = true;
    aspect = 1.0;
  }
  geometry.shown_width = std::llround(frame.width * std::max(aspect, 1.0));
  geometry.shown_height = std::llround(frame.height * std::max(1.0 / aspect, 1.0));
  if (const uint8_t* matrix = display_matrix(stream, frame); matrix != nullptr) {
    turn(geometry, matrix);
  }
  if (geometry.transpose) std::swap(geometry.shown_width, geometry.shown_height);
  return geometry;
}

}  // namespace plateau::media

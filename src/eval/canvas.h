// A borrowed rectangle of interleaved 8-bit RGB pixels.
#pragma once

#include <cstdint>

namespace plateau::eval {

struct Rgb {
  uint8_t r = 0;
  uint8_t g = 0;
  uint8_t b = 0;
};

/// Owns nothing. Row y begins at pixels + y * stride_bytes; rows hold width * 3 bytes.
struct RgbView {
  uint8_t* pixels = nullptr;
  int64_t width = 0;
  int64_t height = 0;
  int64_t stride_bytes = 0;

  uint8_t* row(int64_t y) const { return pixels + y * stride_bytes; }

  /// REQUIRES: the box lies inside.
  RgbView part(int64_t x, int64_t y, int64_t part_width, int64_t part_height) const {
    return {row(y) + x * 3, part_width, part_height, stride_bytes};
  }
};

}  // namespace plateau::eval

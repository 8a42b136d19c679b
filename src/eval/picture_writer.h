// Writes a picture that is painted band by band, so that only two bands of it are ever in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval/canvas.h"

namespace plateau::eval {

struct PictureLayout {
  int64_t width = 0;
  std::vector<int64_t> band_tops;  // first row of each band, then the picture's height
};

/// Paints every pixel of band `index`. May be called again for a band, and must then paint the
/// same; never by two threads at once.
using BandPainter = std::function<void(int index, RgbView band)>;

/// Writes to `path` as its extension says: .png, .jpg or .jpeg (quality 95, full chroma).
/// What `paint` throws is rethrown; an unfinished file is removed.
/// Errors: kInvalidArgument (extension, or too large for JPEG), kNotFound (folder), kUnavailable
/// (writing failed).
void write_picture(const std::string& path, const PictureLayout& layout, const BandPainter& paint);

}  // namespace plateau::eval

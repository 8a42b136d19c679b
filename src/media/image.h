// Still images of any size, decoded in bands. Nothing here holds a whole picture in memory: a reader
// hands out one row of tiles at a time.
//
// The only layer that knows libvips. Not thread-safe: one reader belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "media/tiling.h"

namespace plateau::media {

/// Interleaved 8-bit sRGB, rows top to bottom: pixels[(y * width + x) * 3 + channel].
struct Rgb8 {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels;
};

struct ImageLimits {
  /// Refuse a picture with more pixels than this, from its header alone.
  int64_t max_pixels = 1'000'000'000;
  /// Refuse a picture that cannot be decoded in bands (progressive JPEG, interlaced PNG, a rotated
  /// EXIF orientation) when its decoded size exceeds this; up to it, it is spooled to a file in the
  /// temporary directory.
  int64_t max_spool_bytes = int64_t{4} << 30;
};

/// What the header says, before any pixel is decoded.
struct ImageInfo {
  int64_t width = 0;   // upright: after EXIF orientation
  int64_t height = 0;  // upright
  std::string format;  // "jpeg", "png", "webp", "gif", "tiff", "bmp", ...
  bool spooled = false;  // cannot be decoded in bands; goes through a temporary file
};

/// Reads and checks the header only; decodes no pixel.
/// `path` is a local file name, never an expression of the library's own syntax ("x.jpg[shrink=2]").
/// Errors: kNotFound, kUnsupported (format by name), kCorrupt, kResourceExhausted (a limit).
ImageInfo probe_image(const std::string& path, const ImageLimits& limits);

/// Yields the tiles of one picture in reading order, then the thumbnail where the grid has one.
/// EXIF orientation is applied, alpha is composited on white, every colour space becomes sRGB.
class TileReader {
 public:
  /// Opens the file; `grid` must have been planned for this picture's upright size.
  TileReader(const std::string& path, const TileGrid& grid, const ImageLimits& limits);
  ~TileReader();
  TileReader(TileReader&&) noexcept;
  TileReader& operator=(TileReader&&) noexcept;

  /// The next tile, [tile_size x tile_size], or nullopt after the last one.
  /// Errors: kCorrupt when the pixel data ends early or is damaged.
  std::optional<Rgb8> next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace plateau::media

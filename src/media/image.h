// Still images of any size, decoded in bands: a reader holds one row of tiles, and a picture that
// cannot be decoded in bands passes through a temporary file before its first tile.
//
// The only layer that knows libvips. Not thread-safe: one reader belongs to one thread. Readers in
// several threads are safe, but decode one strip at a time between them.
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

/// A picture with a longer side is refused, from its header alone: memory grows with the width
/// (some 500 bytes for each pixel of it), though not with the height.
inline constexpr int64_t kMaxImageSide = 200'000;

struct ImageLimits {
  /// Refuse a picture with more pixels than this, from its header alone.
  int64_t max_pixels = 1'000'000'000;
  /// Refuse a picture that cannot be handed out in bands (progressive JPEG, interlaced PNG, WebP,
  /// GIF, HEIC, AVIF, TIFF in huge strips or tiles, an EXIF orientation other than upright) when
  /// its decoded size exceeds this; up to it, it is spooled to a file in spool_dir.
  int64_t max_spool_bytes = int64_t{4} << 30;
  /// Refuse a picture whose decoder would hold more than this on the heap while it is spooled: see
  /// ImageInfo::decoder_bytes. The default admits progressive JPEG up to 134 megapixels (89 without
  /// chroma subsampling) and WebP, GIF, HEIC and AVIF up to 67.
  int64_t max_decoder_bytes = int64_t{512} << 20;
  /// Where temporary files are made. They have no name and vanish with the reader. By convention
  /// /var/tmp is on a disc, whereas /tmp is often memory.
  std::string spool_dir = "/var/tmp";
};

/// What the header says, before any pixel is decoded.
struct ImageInfo {
  int64_t width = 0;     // upright: after EXIF orientation
  int64_t height = 0;    // upright
  std::string format;    // "jpeg", "png", "webp", "gif", "tiff", "heic" or "avif", by content
  bool spooled = false;  // cannot be decoded in bands; goes through a temporary file
  /// Heap that the decoder needs for the whole picture, freed before the first tile is handed out;
  /// an estimate from the header, 0 when it works in bands.
  int64_t decoder_bytes = 0;
};

/// Reads and checks the header only; decodes no pixel.
/// `path` is a local file name, never an expression of the library's own syntax
/// ("x.jpg[shrink=2]"). Errors: kNotFound (missing or unreadable), kUnsupported (a format, by name;
/// not a regular file), kCorrupt, kResourceExhausted (a limit).
ImageInfo probe_image(const std::string& path, const ImageLimits& limits);

/// Yields the tiles of one picture in reading order, then the thumbnail where the grid has one.
/// EXIF orientation is applied, alpha is composited on white, every colour space becomes sRGB, the
/// first frame of an animation and the first page of a document stand for the whole. The picture is
/// resized to the grid's size, each axis by itself, as Pillow's BICUBIC does, bit for bit.
class TileReader {
 public:
  /// Opens the file and reads its header; `grid` should have been planned for this picture's
  /// upright size. Errors: as probe_image(), kInvalidArgument for a grid that is empty or absurdly
  /// large.
  TileReader(const std::string& path, const TileGrid& grid, const ImageLimits& limits);
  ~TileReader();
  TileReader(TileReader&&) noexcept;
  TileReader& operator=(TileReader&&) noexcept;

  /// The next tile, [tile_size x tile_size], or nullopt after the last one.
  /// Errors: kCorrupt when the pixel data ends early or is damaged, kResourceExhausted when the
  /// disc is full, kUnavailable when spool_dir cannot be used. After an error only the same error
  /// comes.
  std::optional<Rgb8> next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace plateau::media

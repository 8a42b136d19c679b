#include "media/reader_memory.h"

#include <algorithm>

#include "media/resampler.h"
#include "media/tile_band.h"

namespace plateau::media {
namespace {

constexpr int64_t kChannels = 3;
// Measured for libvips 8.14: its tables and the codec's; its buffers for a picture of ordinary
// width, less where the picture is small; for a wide one, rows kept behind the decoder (see
// set_tile_height in vips_session.cc).
constexpr int64_t kLibraryBase = int64_t{1} << 20;
constexpr int64_t kBuffers = int64_t{5} << 19;
constexpr int64_t kBytesPerColumn = 330;

int64_t decoder_bytes(const ImageInfo& info) {
  const int64_t pixel_bytes = info.width * info.height * kChannels;
  const int64_t streamed =
      kLibraryBase + std::max(std::min(2 * pixel_bytes, kBuffers), info.width * kBytesPerColumn);
  return std::max(streamed, info.decoder_bytes);
}

int64_t resampler_bytes(const ImageInfo& info, int64_t width, int64_t height) {
  const AxisWeights vertical(static_cast<int>(info.height), static_cast<int>(height));
  const int64_t row = width * kChannels;
  // A ring of rows, sums of four bytes, and the weights of both axes.
  return row * (vertical.max_taps() + 1 + 4) + (width + height) * (vertical.max_taps() + 2) * 4;
}

}  // namespace

int64_t reader_bytes(const ImageInfo& info, const TileGrid& grid) {
  const int64_t band = std::min(kMaxBandBytes, grid.width() * int64_t{grid.tile_size} * kChannels);
  int64_t bytes = decoder_bytes(info) + band + resampler_bytes(info, grid.width(), grid.height());
  if (grid.thumbnail) {
    const int64_t side = grid.tile_size;
    bytes += resampler_bytes(info, side, side) + 2 * side * side * kChannels;
  }
  return bytes;
}

int64_t band_reader_bytes(const ImageInfo& info, int64_t width, int64_t height, int64_t band_rows) {
  return decoder_bytes(info) + resampler_bytes(info, width, height) +
         std::min(height, band_rows) * width * kChannels;
}

}  // namespace plateau::media

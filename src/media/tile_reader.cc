// Tested by image_test.cc, formats_test.cc and orientation_test.cc.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "media/image.h"
#include "media/opened_image.h"
#include "media/resampler.h"
#include "media/row_source.h"
#include "media/spool.h"
#include "media/tile_band.h"

namespace plateau::media {
namespace {

constexpr int kMaxTileSize = 8192;

void check_grid(const TileGrid& grid) {
  const bool positive = grid.tile_size > 0 && grid.n_cols > 0 && grid.n_rows > 0;
  // Twice the largest side leaves room for the rounding up to whole tiles.
  if (!positive || grid.tile_size > kMaxTileSize ||
      std::max(grid.width(), grid.height()) > 2 * kMaxImageSide) {
    throw_error(ErrorCode::kInvalidArgument,
                "[image] expected tiles of 1 to {} pixels and sides of at most {}, got {} x {} "
                "tiles of {}",
                kMaxTileSize, 2 * kMaxImageSide, grid.n_cols, grid.n_rows, grid.tile_size);
  }
}

}  // namespace

/// One pass over the file feeds both the grid and the thumbnail. Constructed with the header read;
/// pixels are decoded from the first tile on, and for a spooled picture all of them then.
struct TileReader::Impl {
  Impl(const std::string& path, const TileGrid& tile_grid, const ImageLimits& image_limits)
      : grid(tile_grid), limits(image_limits) {
    check_grid(grid);
    opened.emplace(open_image(path, limits));
  }

  std::optional<Rgb8> next() {
    if (rows == nullptr) start();
    if (tile_col == grid.n_cols) {
      tile_col = 0;
      ++tile_row;
    }
    if (tile_row < grid.n_rows) {
      if (tile_col == 0) fill_band();
      return band->tile(tile_col++);
    }
    if (!thumbnail.has_value()) return std::nullopt;
    return std::exchange(thumbnail, std::nullopt)->tile(0);
  }

 private:
  void start() {
    std::unique_ptr<RowSource> source = decode_rows(*opened);
    if (opened->info.spooled)
      source = spool_upright(*source, opened->orientation, limits.spool_dir);
    const int width = source->width();
    const int height = source->height();
    resampler.emplace(width, height, static_cast<int>(grid.width()),
                      static_cast<int>(grid.height()));
    band.emplace(grid.tile_size, grid.n_cols, limits.spool_dir);
    out_row.resize(static_cast<size_t>(grid.width()) * 3);
    if (grid.thumbnail) {
      thumbnail_resampler.emplace(width, height, grid.tile_size, grid.tile_size);
      thumbnail.emplace(grid.tile_size, /*n_cols=*/1, limits.spool_dir);
      thumbnail_row.resize(static_cast<size_t>(grid.tile_size) * 3);
    }
    rows = std::move(source);
  }

  void fill_band() {
    for (int y = 0; y < grid.tile_size; ++y) {
      while (!resampler->ready()) pull_row();
      resampler->pop(out_row.data());
      band->put_row(y, out_row.data());
    }
    // The rest of the file is read before the last tiles are handed out, so that an early end of it
    // cannot pass unnoticed.
    if (tile_row + 1 == grid.n_rows) {
      while (in_y < rows->height()) pull_row();
    }
  }

  void pull_row() {
    const uint8_t* row = rows->next_row();
    ++in_y;
    resampler->push(row);
    if (!thumbnail_resampler.has_value()) return;
    thumbnail_resampler->push(row);
    while (thumbnail_resampler->ready()) {
      thumbnail_resampler->pop(thumbnail_row.data());
      thumbnail->put_row(thumbnail_y++, thumbnail_row.data());
    }
  }

 public:
  std::optional<Error> failure;  // what next() has thrown; a damaged picture has no further tiles

 private:
  TileGrid grid;
  ImageLimits limits;
  std::optional<OpenedImage> opened;
  std::unique_ptr<RowSource> rows;  // after opened: reads from its file
  std::optional<Resampler> resampler;
  std::optional<TileBand> band;
  std::vector<uint8_t> out_row;
  int in_y = 0;
  int tile_col = 0;
  int tile_row = 0;
  std::optional<Resampler> thumbnail_resampler;
  std::optional<TileBand> thumbnail;
  std::vector<uint8_t> thumbnail_row;
  int thumbnail_y = 0;
};

TileReader::TileReader(const std::string& path, const TileGrid& grid, const ImageLimits& limits)
    : impl_(std::make_unique<Impl>(path, grid, limits)) {}
TileReader::~TileReader() = default;
TileReader::TileReader(TileReader&&) noexcept = default;
TileReader& TileReader::operator=(TileReader&&) noexcept = default;

std::optional<Rgb8> TileReader::next() {
  if (impl_->failure.has_value()) throw *impl_->failure;
  try {
    return impl_->next();
  } catch (const Error& error) {
    impl_->failure = error;
    throw;
  }
}

}  // namespace plateau::media

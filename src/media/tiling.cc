// Tested by tiling_test.cc.
#include "media/tiling.h"

#include <cmath>
#include <limits>

#include "base/check.h"

namespace plateau::media {
namespace {

// Least part of a side that must survive the resize: 98 of 100 pixels.
constexpr int64_t kKeptNumerator = 98;
constexpr int64_t kKeptDenominator = 100;
constexpr int64_t kMaxSide = int64_t{1} << 40;  // keeps all products below within 64 bits
// The largest tile count, with room for the thumbnail.
constexpr int64_t kMaxTiles = std::numeric_limits<int>::max() - 1;

struct Cut {
  int64_t n_cols;
  int64_t n_rows;
  int64_t n_tiles() const { return n_cols * n_rows; }
};

void check(int64_t width, int64_t height, const TilingOptions& options) {
  if (width < 1 || height < 1 || width > kMaxSide || height > kMaxSide) {
    throw_error(ErrorCode::kInvalidArgument,
                "[tiling] expected a size of 1 to {} pixels on each side, got {} x {}", kMaxSide,
                width, height);
  }
  const bool contradiction = options.max_tiles > 0 && options.max_tiles < options.min_tiles;
  if (options.tile_size < 1 || options.min_tiles < 1 || options.max_tiles < 0 || contradiction) {
    throw_error(ErrorCode::kInvalidArgument,
                "[tiling] expected a positive tile size and 1 <= min_tiles <= max_tiles (or "
                "max_tiles 0), got tile_size {}, min_tiles {}, max_tiles {}",
                options.tile_size, options.min_tiles, options.max_tiles);
  }
}

int64_t native_tiles(int64_t side, int64_t tile_size) {
  const int64_t divisor = kKeptDenominator * tile_size;
  return (kKeptNumerator * side + divisor - 1) / divisor;
}

Cut native_cut(int64_t width, int64_t height, const TilingOptions& options) {
  Cut cut{native_tiles(width, options.tile_size), native_tiles(height, options.tile_size)};
  while (cut.n_tiles() < options.min_tiles) {
    // width / n_cols > height / n_rows, without the division.
    if (width * cut.n_rows > height * cut.n_cols) {
      ++cut.n_cols;
    } else {
      ++cut.n_rows;
    }
  }
  return cut;
}

// InternVL's find_closest_aspect_ratio. There, grids are visited by rising tile count, and a later
// one replaces an equally near one if the picture has more than half of its pixels. Visiting order
// here differs (by columns, then rows), so the count is compared too.
Cut nearest_aspect_cut(int64_t width, int64_t height, const TilingOptions& options) {
  const double aspect = static_cast<double>(width) / static_cast<double>(height);
  const double tile_area = static_cast<double>(options.tile_size) * options.tile_size;
  const double area = static_cast<double>(width) * static_cast<double>(height);
  const auto half_filled = [&](const Cut& cut) {
    return area > 0.5 * tile_area * static_cast<double>(cut.n_tiles());
  };
  Cut best{0, 0};
  double best_distance = std::numeric_limits<double>::infinity();
  for (int64_t i = 1; i <= options.max_tiles; ++i) {
    for (int64_t j = (options.min_tiles + i - 1) / i; i * j <= options.max_tiles; ++j) {
      const Cut cut{i, j};
      const double distance = std::abs(aspect - static_cast<double>(i) / static_cast<double>(j));
      bool better = distance < best_distance;
      if (distance == best_distance) {
        const bool more = cut.n_tiles() >= best.n_tiles();
        better = more ? half_filled(cut) : !half_filled(best);
      }
      if (better) {
        best = cut;
        best_distance = distance;
      }
    }
  }
  return best;
}

}  // namespace

TileGrid plan_tiles(int64_t width, int64_t height, const TilingOptions& options) {
  check(width, height, options);
  const int64_t n_cols = native_tiles(width, options.tile_size);
  const int64_t n_rows = native_tiles(height, options.tile_size);
  if (options.max_tiles == 0 && n_cols > kMaxTiles / n_rows) {
    throw_error(ErrorCode::kResourceExhausted,
                "[tiling] expected at most {} tiles, got {} x {} for a picture of {} x {}; try "
                "max_tiles",
                kMaxTiles, n_cols, n_rows, width, height);
  }
  Cut cut{n_cols, n_rows};
  const bool too_many = options.max_tiles > 0 && n_cols > options.max_tiles / n_rows;
  if (!too_many) cut = native_cut(width, height, options);
  if (too_many || (options.max_tiles > 0 && cut.n_tiles() > options.max_tiles)) {
    cut = nearest_aspect_cut(width, height, options);
  }
  TileGrid grid;
  grid.n_cols = static_cast<int>(cut.n_cols);
  grid.n_rows = static_cast<int>(cut.n_rows);
  grid.tile_size = options.tile_size;
  grid.thumbnail = options.thumbnail && cut.n_tiles() > 1;
  return grid;
}

}  // namespace plateau::media

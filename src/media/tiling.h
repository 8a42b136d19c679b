// How a picture is cut into square tiles (InternVL's dynamic tiling). Pure arithmetic.
#pragma once

#include <cstdint>

namespace plateau::media {

struct TilingOptions {
  int tile_size = 448;    // side of a tile in pixels, from the vision model
  int min_tiles = 1;      // from the vision model
  int max_tiles = 0;      // cap on tiles without the thumbnail; 0: as many as native detail needs
  bool thumbnail = true;  // append the whole picture as one more tile when there are several
};

/// A picture resized to [n_cols * tile_size, n_rows * tile_size] and cut into n_cols x n_rows
/// tiles.
struct TileGrid {
  int n_cols = 1;
  int n_rows = 1;
  int tile_size = 448;
  bool thumbnail = false;

  int n_tiles() const { return n_cols * n_rows + (thumbnail ? 1 : 0); }
  int64_t width() const { return int64_t{n_cols} * tile_size; }
  int64_t height() const { return int64_t{n_rows} * tile_size; }
};

/// Native detail: the fewest tiles that shrink neither side by more than 2 %. Where max_tiles is
/// fewer, the family's own rule: the grid of at most max_tiles whose aspect ratio is nearest the
/// picture's, the larger one on a tie when the picture fills more than half of it. Where native
/// detail needs fewer than min_tiles, tiles are added along the axis whose tiles cover most.
/// Errors: kInvalidArgument for a size or an option that is not positive or contradicts another,
/// kResourceExhausted when the tiles could not be counted in an int.
TileGrid plan_tiles(int64_t width, int64_t height, const TilingOptions& options);

}  // namespace plateau::media

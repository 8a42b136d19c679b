// One row of tiles while it fills up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "media/image.h"
#include "media/spool.h"

namespace plateau::media {

/// Kept tile by tile, so that a tile is one piece. In memory up to kMaxBandBytes; a wider picture's
/// band goes to a temporary file, so that memory does not grow with the width.
class TileBand {
 public:
  TileBand(int tile_size, int n_cols, const std::string& spool_dir);

  /// `row` is [n_cols * tile_size * 3]; y counts from the top of the band.
  void put_row(int y, const uint8_t* row);
  Rgb8 tile(int col) const;

 private:
  int64_t offset(int col, int y) const;

  int tile_size_;
  int n_cols_;
  int64_t row_bytes_;  // of one tile
  std::vector<uint8_t> memory_;
  std::optional<Spool> spool_;
};

inline constexpr int64_t kMaxBandBytes = int64_t{32} << 20;

}  // namespace plateau::media

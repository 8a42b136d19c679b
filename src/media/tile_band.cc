// Tested by image_test.cc.
#include "media/tile_band.h"

#include <algorithm>

namespace plateau::media {

TileBand::TileBand(int tile_size, int n_cols, const std::string& spool_dir)
    : tile_size_(tile_size), n_cols_(n_cols), row_bytes_(int64_t{tile_size} * 3) {
  const int64_t n_bytes = offset(n_cols, 0);
  if (n_bytes > kMaxBandBytes) {
    spool_.emplace(spool_dir);
  } else {
    memory_.resize(static_cast<size_t>(n_bytes));
  }
}

int64_t TileBand::offset(int col, int y) const {
  return (int64_t{col} * tile_size_ + y) * row_bytes_;
}

void TileBand::put_row(int y, const uint8_t* row) {
  const auto n_bytes = static_cast<size_t>(row_bytes_);
  for (int col = 0; col < n_cols_; ++col, row += row_bytes_) {
    if (spool_.has_value()) {
      spool_->write_at(offset(col, y), row, n_bytes);
    } else {
      std::copy_n(row, n_bytes, memory_.data() + offset(col, y));
    }
  }
}

Rgb8 TileBand::tile(int col) const {
  Rgb8 tile{tile_size_, tile_size_, std::vector<uint8_t>(static_cast<size_t>(offset(1, 0)))};
  if (spool_.has_value()) {
    spool_->read_at(offset(col, 0), tile.pixels.data(), tile.pixels.size());
  } else {
    std::copy_n(memory_.data() + offset(col, 0), tile.pixels.size(), tile.pixels.data());
  }
  return tile;
}

}  // namespace plateau::media

// Turning a picture while it is written to the spool, so that it is read back in plain row order.
// Tested by orientation_test.cc.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "media/spool.h"

namespace plateau::media {
namespace {

constexpr size_t kPixel = 3;
constexpr size_t kBandBytes = size_t{4} << 20;  // rows gathered before they are written as columns
constexpr int kMaxBandRows = 256;

/// EXIF orientation as three steps in this order: exchange x and y, mirror left-right, mirror
/// top-bottom (both in the upright picture).
struct Turn {
  bool transpose;
  bool mirror_x;
  bool mirror_y;
};

Turn turn_of(int orientation) {
  switch (orientation) {
    case 2:
      return {false, true, false};
    case 3:
      return {false, true, true};
    case 4:
      return {false, false, true};
    case 5:
      return {true, false, false};
    case 6:
      return {true, true, false};
    case 7:
      return {true, true, true};
    case 8:
      return {true, false, true};
    default:
      return {false, false, false};
  }
}

void append_pixel(std::vector<uint8_t>& run, const uint8_t* pixel) {
  run.insert(run.end(), pixel, pixel + kPixel);
}

void write_as_rows(RowSource& stored, Turn turn, Spool& spool) {
  const int width = stored.width();
  const int height = stored.height();
  const size_t row_bytes = static_cast<size_t>(width) * kPixel;
  std::vector<uint8_t> mirrored;
  for (int y = 0; y < height; ++y) {
    const uint8_t* row = stored.next_row();
    if (turn.mirror_x) {
      mirrored.clear();
      for (int x = width - 1; x >= 0; --x) {
        append_pixel(mirrored, row + static_cast<size_t>(x) * kPixel);
      }
      row = mirrored.data();
    }
    const int64_t upright_y = turn.mirror_y ? height - 1 - y : y;
    spool.write_at(upright_y * static_cast<int64_t>(row_bytes), row, row_bytes);
  }
}

// Stored rows become upright columns: a band of them becomes one short run in every upright row.
void write_as_columns(RowSource& stored, Turn turn, Spool& spool) {
  const int width = stored.width();
  const int height = stored.height();
  const size_t row_bytes = static_cast<size_t>(width) * kPixel;
  const int band_rows =
      std::clamp(static_cast<int>(kBandBytes / row_bytes), 1, std::min(kMaxBandRows, height));
  std::vector<uint8_t> band(static_cast<size_t>(band_rows) * row_bytes);
  std::vector<uint8_t> run;
  for (int y0 = 0; y0 < height; y0 += band_rows) {
    const int n_rows = std::min(band_rows, height - y0);
    for (int i = 0; i < n_rows; ++i) {
      std::copy_n(stored.next_row(), row_bytes, band.data() + static_cast<size_t>(i) * row_bytes);
    }
    const int64_t upright_x = turn.mirror_x ? height - y0 - n_rows : y0;
    for (int x = 0; x < width; ++x) {
      run.clear();
      for (int i = 0; i < n_rows; ++i) {
        const int row = turn.mirror_x ? n_rows - 1 - i : i;
        append_pixel(run, band.data() + static_cast<size_t>(row) * row_bytes +
                              static_cast<size_t>(x) * kPixel);
      }
      const int64_t upright_y = turn.mirror_y ? width - 1 - x : x;
      spool.write_at((upright_y * height + upright_x) * static_cast<int64_t>(kPixel), run.data(),
                     run.size());
    }
  }
}

class SpooledRows : public RowSource {
 public:
  SpooledRows(Spool spool, int width, int height)
      : spool_(std::move(spool)),
        width_(width),
        height_(height),
        row_(static_cast<size_t>(width) * kPixel) {}

  int width() const override { return width_; }
  int height() const override { return height_; }

  const uint8_t* next_row() override {
    PLATEAU_CHECK(y_ < height_);
    spool_.read_at(y_ * static_cast<int64_t>(row_.size()), row_.data(), row_.size());
    ++y_;
    return row_.data();
  }

 private:
  Spool spool_;
  int width_;
  int height_;
  int64_t y_ = 0;
  std::vector<uint8_t> row_;
};

}  // namespace

std::unique_ptr<RowSource> spool_upright(RowSource& stored, int orientation,
                                         const std::string& directory) {
  const Turn turn = turn_of(orientation);
  Spool spool(directory);
  if (turn.transpose) {
    write_as_columns(stored, turn, spool);
    return std::make_unique<SpooledRows>(std::move(spool), stored.height(), stored.width());
  }
  write_as_rows(stored, turn, spool);
  return std::make_unique<SpooledRows>(std::move(spool), stored.width(), stored.height());
}

}  // namespace plateau::media

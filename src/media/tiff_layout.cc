// Tested by limits_test.cc.
#include "media/tiff_layout.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace plateau::media {
namespace {

// Tags, and the values that matter, from the TIFF 6.0 specification.
constexpr uint64_t kPhotometric = 262;
constexpr uint64_t kRowsPerStrip = 278;
constexpr uint64_t kPlanarConfiguration = 284;
constexpr uint64_t kTileLength = 323;
constexpr uint64_t kYCbCr = 6;
constexpr uint64_t kSeparatePlanes = 2;
constexpr uint64_t kShort = 3;

constexpr uint64_t kBigTiff = 43;
constexpr uint64_t kMaxEntries = 4096;
// libvips' tiff2vips.c: strips of more rows are read row by row, unless the planes are separate or
// the chroma is subsampled.
constexpr int64_t kMaxWholeStrip = 128;

/// Field widths of the classic and of the big variant, in bytes.
struct Widths {
  size_t offset;  // also of an entry's count and value
  size_t entry_count;
  size_t entry() const { return 4 + 2 * offset; }
};

class Bytes {
 public:
  Bytes(std::vector<uint8_t> bytes, bool big_endian)
      : bytes_(std::move(bytes)), big_endian_(big_endian) {}

  /// 0 where the bytes end before.
  uint64_t uint(size_t at, size_t n) const {
    if (at + n > bytes_.size()) return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < n; ++i) {
      value = value << 8 | bytes_[at + (big_endian_ ? i : n - 1 - i)];
    }
    return value;
  }

 private:
  std::vector<uint8_t> bytes_;
  bool big_endian_;
};

}  // namespace

int64_t tiff_rows_per_piece(const InputFile& file, int64_t height) {
  std::vector<uint8_t> head = file.read_at(0, 16);
  const bool big_endian = !head.empty() && head[0] == 'M';
  const Bytes header(std::move(head), big_endian);
  const bool big = header.uint(2, 2) == kBigTiff;
  const Widths widths = big ? Widths{8, 8} : Widths{4, 2};
  const auto directory = static_cast<int64_t>(header.uint(big ? 8 : 4, widths.offset));
  if (directory < 0) return height;
  const Bytes count(file.read_at(directory, widths.entry_count), big_endian);
  const uint64_t n_entries = std::min(count.uint(0, widths.entry_count), kMaxEntries);
  const Bytes entries(file.read_at(directory + static_cast<int64_t>(widths.entry_count),
                                   n_entries * widths.entry()),
                      big_endian);

  int64_t rows_per_strip = height;  // the default: one strip
  int64_t tile_length = 0;
  bool whole_strips = false;
  for (uint64_t i = 0; i < n_entries; ++i) {
    const size_t at = i * widths.entry();
    const bool is_short = entries.uint(at + 2, 2) == kShort;
    const uint64_t value = entries.uint(at + 4 + widths.offset, is_short ? 2 : widths.offset);
    const int64_t rows = value == 0 ? 1 : static_cast<int64_t>(std::min<uint64_t>(value, height));
    switch (entries.uint(at, 2)) {
      case kTileLength:
        tile_length = rows;
        break;
      case kRowsPerStrip:
        rows_per_strip = rows;
        break;
      case kPhotometric:
        whole_strips |= value == kYCbCr;
        break;
      case kPlanarConfiguration:
        whole_strips |= value == kSeparatePlanes;
        break;
      default:
        break;
    }
  }
  if (tile_length > 0) return tile_length;
  return rows_per_strip > kMaxWholeStrip && !whole_strips ? 1 : rows_per_strip;
}

}  // namespace plateau::media

// What reading a picture costs in memory, from its header. Pure.
// Tested by tests/media/reader_memory_test.cc against real readers.
#pragma once

#include <cstdint>

#include "media/image.h"

namespace plateau::media {

/// An upper bound on the heap of one TileReader: the decoder, rows on their way, one row of tiles.
int64_t reader_bytes(const ImageInfo& info, const TileGrid& grid);

/// The same for a BandReader that resizes to width x height and hands out `band_rows` at a time.
int64_t band_reader_bytes(const ImageInfo& info, int64_t width, int64_t height, int64_t band_rows);

}  // namespace plateau::media

// How a TIFF lays its pixels out decides how many rows libvips must hold to decode it in bands, and
// libvips does not tell.
#pragma once

#include <cstdint>

#include "media/input_file.h"

namespace plateau::media {

/// Rows of the first page that are decoded as one piece: the height of a tile or of a strip, at
/// most `height`; 1 where libvips reads strips row by row. REQUIRES: libvips has accepted the file.
int64_t tiff_rows_per_piece(const InputFile& file, int64_t height);

}  // namespace plateau::media

// A picture as rows of 8-bit sRGB, pulled from top to bottom, once.
#pragma once

#include <cstdint>
#include <memory>

#include "media/opened_image.h"

namespace plateau::media {

class RowSource {
 public:
  virtual ~RowSource() = default;

  virtual int width() const = 0;
  virtual int height() const = 0;
  /// The next row, [width * 3] bytes, valid until the next call. REQUIRES: called at most height()
  /// times. Errors: kCorrupt.
  virtual const uint8_t* next_row() = 0;
};

/// Decodes on demand, a strip at a time; rows are as stored, before orientation. Takes the image
/// out of `opened`, whose file must outlive the result.
std::unique_ptr<RowSource> decode_rows(OpenedImage& opened);

}  // namespace plateau::media

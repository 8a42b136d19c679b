// Which format a file is in, by its content and never by its name, and whether we decode it.
#pragma once

#include <string>

#include "media/input_file.h"

namespace plateau::media {

struct ImageFormat {
  const char* name;    // as in ImageInfo::format
  const char* loader;  // the libvips operation that decodes it from a source
  /// The decoder holds the whole picture whatever the file says.
  bool decodes_whole;
};

/// Errors: kUnsupported naming the format where it is one that we know and refuse (SVG, PDF, BMP,
/// ...) or that this build of libvips cannot decode.
const ImageFormat& detect_format(const InputFile& file);

}  // namespace plateau::media

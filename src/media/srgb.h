// Any colour space that a still image can have, to opaque 8-bit sRGB.
#pragma once

#include <string>

#include "media/vips_handle.h"
#include "media/vips_session.h"

namespace plateau::media {

/// Appends lazy operations, pointwise only, so that the picture can still be read in bands.
/// Alpha is composited on white; an embedded ICC profile is applied when it is usable.
/// Errors: kUnsupported for pixels that are no picture (floating point, 32 bits per sample).
VipsImagePtr to_srgb(VipsImagePtr image, const std::string& path, const VipsSession& session);

}  // namespace plateau::media

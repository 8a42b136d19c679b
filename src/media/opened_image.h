// A picture whose header has been read and found within the limits; no pixel decoded yet.
#pragma once

#include "media/format.h"
#include "media/image.h"
#include "media/input_file.h"
#include "media/vips_handle.h"

namespace plateau::media {

/// Declared in the order of use: the image reads from the file's descriptor.
struct OpenedImage {
  InputFile file;
  const ImageFormat* format;
  VipsImagePtr image;   // lazy; as stored, before orientation
  int orientation = 1;  // EXIF, 1 to 8
  ImageInfo info;
};

/// Errors: as probe_image().
OpenedImage open_image(const std::string& path, const ImageLimits& limits);

}  // namespace plateau::media

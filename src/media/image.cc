#include "media/image.h"

#include "media/opened_image.h"

namespace plateau::media {

ImageInfo probe_image(const std::string& path, const ImageLimits& limits) {
  return open_image(path, limits).info;
}

}  // namespace plateau::media

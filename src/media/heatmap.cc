#include "media/heatmap.h"

#include "base/check.h"

namespace plateau::media {

void write_heatmap(const std::string& image_path, const std::string& png_path,
                   const Heatmap& heatmap, const ImageLimits& limits) {
  (void)image_path;
  (void)png_path;
  (void)heatmap;
  (void)limits;
  throw_error(ErrorCode::kUnsupported, "[--heatmap] not built yet");
}

}  // namespace plateau::media

#include "engine/media_plan.h"

#include "base/check.h"

namespace plateau::engine {

media::ImageLimits to_limits(const ImageOptions& options) {
  return {.max_pixels = options.max_pixels, .max_spool_bytes = options.max_spool_bytes};
}

std::vector<PlannedImage> plan_images(const Request& request, const model::VisionConfig& vision) {
  const media::TilingOptions tiling = {.tile_size = vision.tile_size,
                                       .min_tiles = vision.min_tiles,
                                       .max_tiles = request.image.max_tiles,
                                       .thumbnail = request.image.thumbnail};
  std::vector<PlannedImage> images;
  for (const Message& message : request.messages) {
    for (const ContentPart& part : message.content) {
      const auto* image = std::get_if<ImagePart>(&part);
      if (image == nullptr) continue;
      const media::ImageInfo info = media::probe_image(image->path, to_limits(request.image));
      images.push_back({image->path, info, media::plan_tiles(info.width, info.height, tiling)});
    }
  }
  return images;
}

ImageLayout layout_of(const PlannedImage& image, const model::VisionConfig& vision) {
  const int side = vision.patches_per_side() / vision.scale_factor;
  return {.n_units = image.grid.n_tiles(), .n_grid_rows = side, .n_grid_cols = side};
}

ImageReport report_of(const PlannedImage& image, const model::VisionConfig& vision) {
  ImageReport report;
  report.path = image.path;
  report.format = image.info.format;
  report.width = image.info.width;
  report.height = image.info.height;
  report.used_width = image.grid.width();
  report.used_height = image.grid.height();
  report.n_cols = image.grid.n_cols;
  report.n_rows = image.grid.n_rows;
  report.n_tiles = image.grid.n_tiles();
  report.tokens_made = int64_t{report.n_tiles} * vision.tokens_per_tile();
  return report;
}

std::string resize_note(const ImageReport& report) {
  if (report.width == report.used_width && report.height == report.used_height) return "";
  return fmt::format("{}: resized from {}x{} to {}x{} ({} x {} tiles)", report.path, report.width,
                     report.height, report.used_width, report.used_height, report.n_cols,
                     report.n_rows);
}

}  // namespace plateau::engine

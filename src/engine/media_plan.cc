#include "engine/media_plan.h"

#include <algorithm>

#include "base/check.h"

namespace plateau::engine {

media::ImageLimits to_limits(const ImageOptions& options) {
  return {.max_pixels = options.max_pixels, .max_spool_bytes = options.max_spool_bytes};
}

std::vector<PlannedImage> plan_images(const Request& request, const model::VisionConfig& vision) {
  const ImageOptions& options = request.image;
  std::vector<PlannedImage> images;
  for (const Message& message : request.messages) {
    for (const ContentPart& part : message.content) {
      const auto* image = std::get_if<ImagePart>(&part);
      if (image == nullptr) continue;
      images.push_back({image->path, media::probe_image(image->path, to_limits(options)), {}});
    }
  }
  media::TilingOptions tiling = {.tile_size = vision.tile_size,
                                 .min_tiles = vision.min_tiles,
                                 .max_tiles = options.max_tiles,
                                 .thumbnail = options.thumbnail};
  if (options.max_visual_tokens > 0 && !images.empty()) {
    const int64_t n_tiles = options.max_visual_tokens / vision.tokens_per_tile();
    const auto per_image = n_tiles / static_cast<int64_t>(images.size());
    const int64_t share = per_image - (options.thumbnail && per_image > 1 ? 1 : 0);
    if (share < vision.min_tiles) {
      throw_error(ErrorCode::kInvalidArgument,
                  "[--max-visual-tokens] expected at least {} tokens for {} pictures, got {}",
                  int64_t{vision.tokens_per_tile()} * vision.min_tiles *
                      static_cast<int64_t>(images.size()),
                  images.size(), options.max_visual_tokens);
    }
    const int cap = static_cast<int>(std::min<int64_t>(share, INT32_MAX));
    tiling.max_tiles = tiling.max_tiles > 0 ? std::min(tiling.max_tiles, cap) : cap;
  }
  for (PlannedImage& image : images) {
    image.grid = media::plan_tiles(image.info.width, image.info.height, tiling);
  }
  return images;
}

VisualLayout layout_of(const PlannedImage& image, const model::VisionConfig& vision) {
  const int side = vision.patches_per_side() / vision.scale_factor;
  VisualLayout layout;
  for (int row = 0; row < image.grid.n_rows; ++row) {
    for (int col = 0; col < image.grid.n_cols; ++col) {
      layout.units.push_back(
          {.n_grid_rows = side, .n_grid_cols = side, .grid_h0 = row * side, .grid_w0 = col * side});
    }
  }
  if (image.grid.thumbnail) {
    layout.units.push_back({.n_grid_rows = side, .n_grid_cols = side, .plane = 1});
  }
  return layout;
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

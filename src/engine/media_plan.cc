#include "engine/media_plan.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace plateau::engine {
namespace {

// The family's own preprocessor refuses what is longer.
constexpr int64_t kTrainedAspectRatio = 200;

std::vector<PlannedImage> probe_images(const Request& request) {
  std::vector<PlannedImage> images;
  for (const Message& message : request.messages) {
    for (const ContentPart& part : message.content) {
      const auto* image = std::get_if<ImagePart>(&part);
      if (image == nullptr) continue;
      images.push_back(
          {image->path, media::probe_image(image->path, to_limits(request.image)), {}});
    }
  }
  return images;
}

/// The tokens that each of n pictures may have by --max-visual-tokens and --image-max-tokens; 0: no
/// cap.
int64_t token_cap(const ImageOptions& options, size_t n_images) {
  int64_t cap = options.max_tokens;
  if (options.max_visual_tokens > 0 && n_images > 0) {
    const int64_t share = options.max_visual_tokens / static_cast<int64_t>(n_images);
    if (share < 1) {
      throw_error(ErrorCode::kInvalidArgument,
                  "[--max-visual-tokens] expected at least {} tokens for {} pictures, got {}",
                  n_images, n_images, options.max_visual_tokens);
    }
    cap = cap > 0 ? std::min(cap, share) : share;
  }
  return cap;
}

void refuse_option(bool given, const char* option, const char* projector, const char* instead) {
  if (given) {
    throw_error(ErrorCode::kInvalidArgument, "[{}] does not apply to a {} projector; try {}",
                option, projector, instead);
  }
}

void plan_tile_images(const ImageOptions& options, const model::VisionConfig& vision,
                      std::vector<PlannedImage>& images) {
  refuse_option(options.min_tokens > 0, "--image-min-tokens", "internvl", "--max-tiles");
  const int min_tiles = vision.internvl().min_tiles;
  media::TilingOptions tiling = {.tile_size = vision.internvl().tile_size,
                                 .min_tiles = min_tiles,
                                 .max_tiles = options.max_tiles,
                                 .thumbnail = options.thumbnail};
  const int64_t cap = token_cap(options, images.size());
  if (cap > 0) {
    const int64_t per_image = cap / vision.tokens_per_tile();
    const int64_t share = per_image - (options.thumbnail && per_image > 1 ? 1 : 0);
    if (share < min_tiles) {
      const bool each = options.max_tokens > 0 && cap == options.max_tokens;
      const int64_t n_images = each ? 1 : static_cast<int64_t>(images.size());
      throw_error(ErrorCode::kInvalidArgument,
                  "[{}] expected at least {} tokens for {} pictures, got {}",
                  each ? "--image-max-tokens" : "--max-visual-tokens",
                  int64_t{vision.tokens_per_tile()} * min_tiles * n_images, n_images,
                  each ? options.max_tokens : options.max_visual_tokens);
    }
    const int cap_tiles = static_cast<int>(std::min<int64_t>(share, INT32_MAX));
    tiling.max_tiles = tiling.max_tiles > 0 ? std::min(tiling.max_tiles, cap_tiles) : cap_tiles;
  }
  for (PlannedImage& image : images) {
    image.cut = media::plan_tiles(image.info.width, image.info.height, tiling);
  }
}

void plan_patch_images(const ImageOptions& options, const model::VisionConfig& vision,
                       const EncoderLimits& limits, std::vector<PlannedImage>& images) {
  refuse_option(options.max_tiles > 0, "--max-tiles", "qwen2.5vl_merger", "--image-max-tokens");
  const int64_t token_pixels = int64_t{vision.token_size()} * vision.token_size();
  media::TokenGridOptions rounding = {.token_size = vision.token_size(),
                                      .min_pixels = vision.qwen25vl().min_pixels,
                                      .max_tokens = token_cap(options, images.size())};
  if (options.min_tokens > 0) {
    rounding.min_pixels = options.min_tokens > std::numeric_limits<int64_t>::max() / token_pixels
                              ? std::numeric_limits<int64_t>::max()
                              : options.min_tokens * token_pixels;
  }
  for (PlannedImage& image : images) {
    const media::TokenGrid grid =
        media::plan_token_grid(image.info.width, image.info.height, rounding);
    if (std::max(grid.width(), grid.height()) > 2 * media::kMaxImageSide) {
      throw_error(ErrorCode::kInvalidArgument,
                  "[--image-min-tokens] expected sides of at most {} pixels, got {} x {} for '{}'",
                  2 * media::kMaxImageSide, grid.width(), grid.height(), image.path);
    }
    image.cut =
        PatchPlan{grid, vision::plan_encode(vision, grid.n_rows, grid.n_cols,
                                            /*n_frames=*/1, limits.memory_bytes, limits.n_threads)};
  }
}

VisualLayout layout_of(const media::TileGrid& grid, const model::VisionConfig& vision) {
  const int side = vision.patches_per_side() / vision.internvl().scale_factor;
  VisualLayout layout;
  for (int row = 0; row < grid.n_rows; ++row) {
    for (int col = 0; col < grid.n_cols; ++col) {
      layout.units.push_back(
          {.n_grid_rows = side, .n_grid_cols = side, .grid_h0 = row * side, .grid_w0 = col * side});
    }
  }
  if (grid.thumbnail) {
    layout.units.push_back({.n_grid_rows = side, .n_grid_cols = side, .plane = 1});
  }
  return layout;
}

VisualLayout layout_of(const PatchPlan& plan) {
  VisualLayout layout;
  for (int unit = 0; unit < plan.encode.n_units; ++unit) {
    const vision::PatchArea area = plan.area(unit);
    layout.units.push_back(
        {.n_grid_rows = area.n_rows, .n_grid_cols = area.n_cols, .grid_h0 = area.first_row});
  }
  return layout;
}

}  // namespace

media::ImageLimits to_limits(const ImageOptions& options) {
  return {.max_pixels = options.max_pixels, .max_spool_bytes = options.max_spool_bytes};
}

std::vector<PlannedImage> plan_images(const Request& request, const model::VisionConfig& vision,
                                      const EncoderLimits& limits) {
  std::vector<PlannedImage> images = probe_images(request);
  if (vision.is_internvl()) {
    plan_tile_images(request.image, vision, images);
  } else {
    plan_patch_images(request.image, vision, limits, images);
  }
  return images;
}

VisualLayout layout_of(const PlannedImage& image, const model::VisionConfig& vision) {
  const auto* grid = std::get_if<media::TileGrid>(&image.cut);
  return grid != nullptr ? layout_of(*grid, vision) : layout_of(std::get<PatchPlan>(image.cut));
}

ImageReport report_of(const PlannedImage& image, const model::VisionConfig& vision) {
  ImageReport report;
  report.path = image.path;
  report.format = image.info.format;
  report.width = image.info.width;
  report.height = image.info.height;
  if (const auto* grid = std::get_if<media::TileGrid>(&image.cut)) {
    report.used_width = grid->width();
    report.used_height = grid->height();
    report.n_cols = grid->n_cols;
    report.n_rows = grid->n_rows;
    report.n_tiles = grid->n_tiles();
    report.tokens_made = int64_t{report.n_tiles} * vision.tokens_per_tile();
  } else {
    const auto& plan = std::get<PatchPlan>(image.cut);
    report.used_width = plan.grid.width();
    report.used_height = plan.grid.height();
    report.n_cols = plan.grid.n_cols;
    report.n_rows = plan.grid.n_rows;
    report.n_bands = plan.encode.n_units;
    report.tokens_made = plan.grid.n_tokens();
  }
  return report;
}

std::vector<std::string> image_notes(const ImageReport& report, const PlannedImage& image,
                                     const model::VisionConfig& vision) {
  std::vector<std::string> notes;
  if (report.width != report.used_width || report.height != report.used_height) {
    notes.push_back(fmt::format("{}: resized from {}x{} to {}x{} ({} x {} {})", report.path,
                                report.width, report.height, report.used_width, report.used_height,
                                report.n_cols, report.n_rows,
                                report.n_bands > 0 ? "tokens" : "tiles"));
  }
  const auto* plan = std::get_if<PatchPlan>(&image.cut);
  if (plan == nullptr) return notes;
  if (plan->encode.n_units > 1) {
    notes.push_back(
        fmt::format("{}: encoded in {} bands of {} rows of tokens to stay within the encoder's "
                    "memory, each without sight of the others: an approximation; whole it needs "
                    "{} MiB (--encoder-memory), or fewer tokens (--image-max-tokens)",
                    report.path, plan->encode.n_units, plan->encode.rows_per_unit,
                    (vision::encoder_scratch_bytes(vision, plan->grid.n_rows, plan->grid.n_cols,
                                                   {.group = plan->encode.group}) >>
                     20) +
                        1));
  }
  if (report.used_width * report.used_height > vision.qwen25vl().max_pixels) {
    notes.push_back(fmt::format(
        "{}: more pixels than the {} the model's own processor would use; to shrink it as that "
        "does, --image-max-tokens {}",
        report.path, vision.qwen25vl().max_pixels,
        vision.qwen25vl().max_pixels / (int64_t{vision.token_size()} * vision.token_size())));
  }
  if (std::max(report.width, report.height) >
      kTrainedAspectRatio * std::min(report.width, report.height)) {
    notes.push_back(
        fmt::format("{}: longer than {} times its breadth, which the model was not "
                    "trained on: quality may suffer",
                    report.path, kTrainedAspectRatio));
  }
  return notes;
}

}  // namespace plateau::engine

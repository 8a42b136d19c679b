#include "engine/media_plan.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/plural.h"
#include "engine/chunk_plan.h"

namespace plateau::engine {
namespace {

// The family's own preprocessor refuses what is longer.
constexpr int64_t kTrainedAspectRatio = 200;

size_t count_media(const Request& request) {
  size_t n_media = 0;
  for (const Message& message : request.messages) {
    for (const ContentPart& part : message.content) {
      n_media += std::holds_alternative<TextPart>(part) ? 0 : 1;
    }
  }
  return n_media;
}

/// The tokens that a film may have by --max-video-tokens and --max-visual-tokens; 0: no cap.
int64_t film_cap(const Request& request, size_t n_media) {
  int64_t cap = request.video.max_tokens;
  if (request.image.max_visual_tokens > 0) {
    const int64_t share = request.image.max_visual_tokens / static_cast<int64_t>(n_media);
    cap = cap > 0 ? std::min(cap, share) : share;
  }
  return cap;
}

/// The most frames of which each still has the tokens that it needs at least; 0: no cap.
int64_t frame_cap(int64_t cap, const model::VisionConfig& vision, const std::string& path) {
  if (cap == 0) return 0;
  const int least = vision.is_internvl() ? vision.tokens_per_tile() : 1;
  if (cap < least) {
    throw_error(ErrorCode::kInvalidArgument,
                "[--max-video-tokens, --max-visual-tokens] expected at least {} tokens for a film, "
                "got {} for '{}'",
                least, cap, path);
  }
  return std::min<int64_t>(cap / least, INT32_MAX) * vision.frames_per_unit;
}

PlannedImage probe_film(const VideoPart& part, const Request& request, int64_t cap,
                        const model::VisionConfig& vision, FilmProbes& probes) {
  PlannedImage image;
  image.path = part.path;
  image.film = plan_film(part, request.video, to_limits(request.image),
                         frame_cap(cap, vision, part.path), vision.frames_per_unit, probes);
  image.info.width = image.film->info.width;
  image.info.height = image.film->info.height;
  image.info.format = image.film->info.codec;
  return image;
}

std::vector<PlannedImage> probe_media(const Request& request, const model::VisionConfig& vision,
                                      FilmProbes& probes) {
  const int64_t cap = film_cap(request, count_media(request));
  std::vector<PlannedImage> images;
  for (const Message& message : request.messages) {
    for (const ContentPart& part : message.content) {
      if (const auto* image = std::get_if<ImagePart>(&part)) {
        images.push_back(
            {image->path, media::probe_image(image->path, to_limits(request.image)), {}});
      } else if (const auto* film = std::get_if<VideoPart>(&part)) {
        images.push_back(probe_film(*film, request, cap, vision, probes));
      }
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
                  "[--max-visual-tokens] expected at least {} for {}, got {}",
                  counted(static_cast<int64_t>(n_images), "token"),
                  counted(static_cast<int64_t>(n_images), "picture"), options.max_visual_tokens);
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
      throw_error(ErrorCode::kInvalidArgument, "[{}] expected at least {} tokens for {}, got {}",
                  each ? "--image-max-tokens" : "--max-visual-tokens",
                  int64_t{vision.tokens_per_tile()} * min_tiles * n_images,
                  counted(n_images, "picture"),
                  each ? options.max_tokens : options.max_visual_tokens);
    }
    const int cap_tiles = static_cast<int>(std::min<int64_t>(share, INT32_MAX));
    tiling.max_tiles = tiling.max_tiles > 0 ? std::min(tiling.max_tiles, cap_tiles) : cap_tiles;
  }
  for (PlannedImage& image : images) {
    if (image.film) continue;
    image.cut = media::plan_tiles(image.info.width, image.info.height, tiling);
  }
}

/// InternVL's films: each frame is one tile, whatever its shape, without a thumbnail.
void plan_tile_films(const model::VisionConfig& vision, std::vector<PlannedImage>& images) {
  for (PlannedImage& image : images) {
    if (image.film) image.cut = media::TileGrid{.tile_size = vision.internvl().tile_size};
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
    if (image.film) continue;
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

/// Qwen2.5-VL's films: a slice has its frames' size, rounded, within the caps.
void plan_patch_films(const Request& request, const model::VisionConfig& vision,
                      const EncoderLimits& limits, std::vector<PlannedImage>& images) {
  const int64_t cap = film_cap(request, images.size());
  for (PlannedImage& image : images) {
    if (!image.film) continue;
    media::TokenGridOptions rounding = {.token_size = vision.token_size(),
                                        .min_pixels = vision.qwen25vl().min_pixels,
                                        .max_tokens = request.video.max_frame_tokens};
    if (cap > 0) {
      const int64_t share = std::max<int64_t>(cap / image.film->n_slices(), 1);
      rounding.max_tokens = rounding.max_tokens > 0 ? std::min(rounding.max_tokens, share) : share;
    }
    const media::TokenGrid grid =
        media::plan_token_grid(image.info.width, image.info.height, rounding);
    image.cut = PatchPlan{
        grid, vision::plan_encode(vision, grid.n_rows, grid.n_cols, vision.frames_per_unit,
                                  limits.memory_bytes, limits.n_threads)};
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

std::vector<PlannedImage> plan_images(const Request& request, const vision::Encoder& encoder,
                                      const EncoderLimits& limits, FilmProbes& probes) {
  const model::VisionConfig& vision = encoder.config();
  if (vision.is_mtmd()) {
    refuse_films(request, vision);
    std::vector<PlannedImage> pictures = probe_media(request, vision, probes);
    if (!pictures.empty()) {
      plan_chunk_images(request.image, encoder, limits.memory_bytes, pictures);
    }
    return pictures;
  }
  std::vector<PlannedImage> images = probe_media(request, vision, probes);
  const bool has_pictures = std::any_of(images.begin(), images.end(),
                                        [](const PlannedImage& image) { return !image.film; });
  if (vision.is_internvl()) {
    if (has_pictures) plan_tile_images(request.image, vision, images);
    plan_tile_films(vision, images);
  } else {
    if (has_pictures) plan_patch_images(request.image, vision, limits, images);
    plan_patch_films(request, vision, limits, images);
  }
  return images;
}

VisualLayout layout_of(const PlannedImage& image, const model::VisionConfig& vision) {
  if (const auto* grid = std::get_if<media::TileGrid>(&image.cut)) {
    VisualLayout layout = layout_of(*grid, vision);
    return image.film ? numbered_layout(*image.film, layout) : layout;
  }
  if (const auto* chunks = std::get_if<ChunkPlan>(&image.cut)) return chunks->layout;
  VisualLayout layout = layout_of(std::get<PatchPlan>(image.cut));
  return image.film ? timed_layout(*image.film, layout) : layout;
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
  } else if (const auto* plan = std::get_if<PatchPlan>(&image.cut)) {
    report.used_width = plan->grid.width();
    report.used_height = plan->grid.height();
    report.n_cols = plan->grid.n_cols;
    report.n_rows = plan->grid.n_rows;
    report.n_bands = plan->encode.n_units;
    report.tokens_made = plan->grid.n_tokens();
  } else {
    report.used_width = image.info.width;
    report.used_height = image.info.height;
    report.n_tiles = image.n_units();
    report.tokens_made = n_tokens(std::get<ChunkPlan>(image.cut).layout);
  }
  if (image.film) {
    report.video = video_report(*image.film);
    report.tokens_made *= report.video->n_slices;
  }
  return report;
}

std::vector<std::string> image_notes(const ImageReport& report, const PlannedImage& image,
                                     const model::VisionConfig& vision) {
  std::vector<std::string> notes;
  if (image.film) notes = image.film->notes;
  if (report.width != report.used_width || report.height != report.used_height) {
    notes.push_back(fmt::format("{}: {}resized from {}x{} to {}x{} ({} x {} {})", report.path,
                                image.film ? "frames " : "", report.width, report.height,
                                report.used_width, report.used_height, report.n_cols, report.n_rows,
                                report.n_bands > 0 ? "tokens" : "tiles"));
  }
  const auto* plan = std::get_if<PatchPlan>(&image.cut);
  if (plan == nullptr) return notes;
  if (plan->encode.n_units > 1) {
    notes.push_back(fmt::format(
        "{}: encoded in {} bands of {} rows of tokens to stay within the encoder's "
        "memory, each without sight of the others: an approximation; whole it needs "
        "{} MiB (--encoder-memory), or fewer tokens (--image-max-tokens)",
        report.path, plan->encode.n_units, plan->encode.rows_per_unit,
        (vision::encoder_scratch_bytes(
             vision, plan->grid.n_rows, plan->grid.n_cols,
             {.group = plan->encode.group, .n_frames = image.film ? vision.frames_per_unit : 1}) >>
         20) +
            1));
  }
  if (!image.film && report.used_width * report.used_height > vision.qwen25vl().max_pixels) {
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

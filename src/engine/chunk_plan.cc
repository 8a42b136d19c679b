#include "engine/chunk_plan.h"

#include <algorithm>

#include "base/check.h"

namespace plateau::engine {
namespace {

void refuse_option(bool given, const char* option, const model::VisionConfig& vision) {
  if (given) {
    throw_error(ErrorCode::kInvalidArgument,
                "[{}] does not apply to a {} projector, which llama.cpp's library cuts as it does "
                "itself; try leaving it out",
                option, vision.projector_type);
  }
}

/// Nothing can be shrunk: the library chooses the number of tokens.
void check_caps(const ImageOptions& options, const std::vector<PlannedImage>& images) {
  int64_t total = 0;
  for (const PlannedImage& image : images) {
    const int64_t n = n_tokens(std::get<ChunkPlan>(image.cut).layout);
    total += n;
    if (options.max_tokens > 0 && n > options.max_tokens) {
      throw_error(ErrorCode::kInvalidArgument,
                  "[--image-max-tokens] expected at least {} tokens for '{}' with this projector, "
                  "got {}",
                  n, image.path, options.max_tokens);
    }
  }
  if (options.max_visual_tokens > 0 && total > options.max_visual_tokens) {
    throw_error(ErrorCode::kInvalidArgument,
                "[--max-visual-tokens] expected at least {} tokens for these pictures with this "
                "projector, got {}; try fewer of them",
                total, options.max_visual_tokens);
  }
}

}  // namespace

void refuse_films(const Request& request, const model::VisionConfig& vision) {
  for (const Message& message : request.messages) {
    for (const ContentPart& part : message.content) {
      if (const auto* film = std::get_if<VideoPart>(&part)) {
        throw_error(
            ErrorCode::kInvalidArgument,
            "[--video] expected pictures with a {} projector, got the film '{}'; try single "
            "frames as --image",
            vision.projector_type, film->path);
      }
    }
  }
}

VisualLayout layout_of(const std::vector<vision::MtmdPiece>& pieces,
                       const model::VisionConfig& vision) {
  const int side = vision.chunk_side();
  VisualLayout layout;
  layout.has_own_markers = true;
  for (const vision::MtmdPiece& piece : pieces) {
    const auto unit = static_cast<int>(layout.units.size());
    if (!piece.tokens.empty()) {
      layout.markers.push_back({.unit = unit, .tokens = piece.tokens});
      continue;
    }
    const bool is_square = piece.n_tokens == side * side;
    layout.units.push_back({.n_grid_rows = is_square ? side : 1,
                            .n_grid_cols = is_square ? side : piece.n_tokens,
                            .plane = unit + 1});
  }
  layout.units.back().plane = 0;
  return layout;
}

int64_t n_tokens(const VisualLayout& layout) {
  int64_t total = 0;
  for (const UnitLayout& unit : layout.units) total += unit.n_tokens();
  return total;
}

void plan_chunk_images(const ImageOptions& options, const vision::Encoder& encoder,
                       int64_t max_encoder_bytes, std::vector<PlannedImage>& images) {
  const model::VisionConfig& vision = encoder.config();
  refuse_option(options.max_tiles > 0, "--max-tiles", vision);
  refuse_option(options.min_tokens > 0, "--image-min-tokens", vision);
  for (PlannedImage& image : images) {
    const vision::PictureSize size = {image.info.width, image.info.height};
    ChunkPlan plan;
    plan.layout = layout_of(encoder.mtmd().lay_out(size), vision);
    plan.encoder_bytes = encoder.mtmd().scratch_bytes(size, std::ssize(plan.layout.units));
    if (max_encoder_bytes > 0 && plan.encoder_bytes > max_encoder_bytes) {
      throw_error(ErrorCode::kResourceExhausted,
                  "[vision encoder] expected at least {} bytes for the {} x {} pixels of '{}', "
                  "which llama.cpp's library encodes without a bound, got a bound of {}; try "
                  "--encoder-memory {}MiB or a smaller picture",
                  plan.encoder_bytes, size.width, size.height, image.path, max_encoder_bytes,
                  (plan.encoder_bytes >> 20) + 1);
    }
    image.cut = std::move(plan);
  }
  check_caps(options, images);
}

}  // namespace plateau::engine

#include "engine/visual_source.h"

#include <algorithm>

#include "base/check.h"
#include "base/stopwatch.h"

namespace plateau::engine {

vision::PatchArea PatchPlan::area(int unit) const {
  const int first_row = unit * encode.rows_per_unit;
  return {.first_row = first_row,
          .n_rows = std::min(encode.rows_per_unit, grid.n_rows - first_row),
          .n_cols = grid.n_cols};
}

int PlannedImage::n_units() const {
  const auto* grid = std::get_if<media::TileGrid>(&cut);
  return grid != nullptr ? grid->n_tiles() : std::get<PatchPlan>(cut).encode.n_units;
}

VisualSource::VisualSource(vision::Encoder& encoder, const std::vector<PlannedImage>& images,
                           const media::ImageLimits& limits, int encoder_batch,
                           std::function<void(double)> on_progress)
    : encoder_(encoder),
      images_(images),
      limits_(limits),
      encoder_batch_(encoder_batch),
      on_progress_(std::move(on_progress)) {
  PLATEAU_CHECK(encoder_batch >= 1);
}

std::span<const float> VisualSource::unit(int image, int unit) {
  const bool held = image == open_image_ && unit >= first_unit_ && unit < first_unit_ + n_units_;
  if (!held) encode_from(image, unit);
  const size_t size = embeddings_.size() / static_cast<size_t>(n_units_);
  return std::span(embeddings_).subspan(static_cast<size_t>(unit - first_unit_) * size, size);
}

void VisualSource::encode_from(int image, int unit) {
  const Stopwatch watch;
  const PlannedImage& planned = images_[static_cast<size_t>(image)];
  if (image != open_image_) {
    tiles_.reset();
    bands_.reset();
    open_image_ = image;
    next_unit_ = 0;
  }
  PLATEAU_CHECK(unit == next_unit_);
  n_units_ = 0;
  embeddings_ = {};  // two units are never held at once
  if (const auto* grid = std::get_if<media::TileGrid>(&planned.cut)) {
    encode_tiles(planned, *grid);
  } else {
    encode_band(planned, std::get<PatchPlan>(planned.cut));
  }
  first_unit_ = unit;
  next_unit_ = unit + n_units_;
  units_done_ += n_units_;
  if (next_unit_ == planned.n_units()) {
    tiles_.reset();
    bands_.reset();
  }
  encode_ms_ += watch.ms();
}

void VisualSource::encode_tiles(const PlannedImage& image, const media::TileGrid& grid) {
  if (!tiles_) tiles_.emplace(image.path, grid, limits_);
  const int n = std::min(encoder_batch_, grid.n_tiles() - next_unit_);
  std::vector<media::Rgb8> tiles;
  for (int i = 0; i < n; ++i) {
    std::optional<media::Rgb8> tile = tiles_->next();
    PLATEAU_CHECK(tile.has_value());
    tiles.push_back(std::move(*tile));
  }
  embeddings_ = encoder_.encode(tiles);
  n_units_ = n;
}

void VisualSource::encode_band(const PlannedImage& image, const PatchPlan& plan) {
  if (!bands_) {
    bands_.emplace(image.path, static_cast<int>(plan.grid.width()),
                   static_cast<int>(plan.grid.height()), limits_);
  }
  media::PixelBands* const frame = &*bands_;
  embeddings_ =
      encoder_.encode(plan.area(next_unit_), {&frame, 1}, plan.encode.group, on_progress_);
  n_units_ = 1;
}

}  // namespace plateau::engine

#include "engine/visual_source.h"

#include <algorithm>

#include "base/check.h"
#include "base/release.h"
#include "base/stopwatch.h"

namespace plateau::engine {

vision::PatchArea PatchPlan::area(int unit) const {
  const int first_row = unit * encode.rows_per_unit;
  return {.first_row = first_row,
          .n_rows = std::min(encode.rows_per_unit, grid.n_rows - first_row),
          .n_cols = grid.n_cols};
}

int PlannedImage::n_units_per_slice() const {
  if (const auto* grid = std::get_if<media::TileGrid>(&cut)) return grid->n_tiles();
  if (const auto* patches = std::get_if<PatchPlan>(&cut)) return patches->encode.n_units;
  return static_cast<int>(std::get<ChunkPlan>(cut).layout.units.size());
}

int PlannedImage::n_units() const { return (film ? film->n_slices() : 1) * n_units_per_slice(); }

int PlannedImage::used_width() const {
  if (const auto* grid = std::get_if<media::TileGrid>(&cut)) return static_cast<int>(grid->width());
  if (const auto* patches = std::get_if<PatchPlan>(&cut)) {
    return static_cast<int>(patches->grid.width());
  }
  return static_cast<int>(info.width);
}

int PlannedImage::used_height() const {
  if (const auto* grid = std::get_if<media::TileGrid>(&cut)) {
    return static_cast<int>(grid->height());
  }
  if (const auto* patches = std::get_if<PatchPlan>(&cut)) {
    return static_cast<int>(patches->grid.height());
  }
  return static_cast<int>(info.height);
}

VisualSource::VisualSource(vision::Encoder& encoder, const std::vector<PlannedImage>& images,
                           const media::ImageLimits& limits, int encoder_batch,
                           std::function<void(double)> on_progress,
                           std::function<bool()> should_cancel)
    : encoder_(encoder),
      images_(images),
      limits_(limits),
      encoder_batch_(encoder_batch),
      on_progress_(std::move(on_progress)),
      should_cancel_(std::move(should_cancel)) {
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
    close();
    open_image_ = image;
    next_unit_ = 0;
  }
  PLATEAU_CHECK(unit == next_unit_);
  n_units_ = 0;
  release(embeddings_);  // two units are never held at once
  const auto* grid = std::get_if<media::TileGrid>(&planned.cut);
  if (std::holds_alternative<ChunkPlan>(planned.cut)) {
    encode_chunk(planned);
  } else if (grid != nullptr && planned.film) {
    encode_frames(planned);
  } else if (grid != nullptr) {
    encode_tiles(planned, *grid);
  } else if (planned.film) {
    encode_slice(planned, std::get<PatchPlan>(planned.cut));
  } else {
    encode_band(planned, std::get<PatchPlan>(planned.cut));
  }
  first_unit_ = unit;
  next_unit_ = unit + n_units_;
  units_done_ += n_units_;
  if (next_unit_ == planned.n_units()) close();
  encode_ms_ += watch.ms();
}

void VisualSource::close() {
  tiles_.reset();
  bands_.reset();
  if (encoder_.config().is_mtmd()) encoder_.mtmd().close();
  slice_bands_.clear();
  slice_.clear();
  if (!frames_) return;
  film_bytes_ = std::max(film_bytes_, frames_->peak_bytes());
  if (std::string text = frames_->damage(); !text.empty()) {
    film_damage_.push_back({open_image_, frames_->n_damaged(), std::move(text)});
  }
  frames_.reset();
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

/// The whole picture at its own size: what becomes of it is libmtmd's decision.
void VisualSource::encode_chunk(const PlannedImage& image) {
  if (next_unit_ == 0) {
    media::BandReader bands(image.path, image.used_width(), image.used_height(), limits_);
    media::Rgb8 picture = {.width = bands.width(), .height = bands.height(), .pixels = {}};
    picture.pixels.reserve(3 * static_cast<size_t>(picture.width) *
                           static_cast<size_t>(picture.height));
    for (int y = 0; y < picture.height; y += kPictureRows) {
      const std::span<const uint8_t> rows = bands.next(std::min(kPictureRows, picture.height - y));
      picture.pixels.insert(picture.pixels.end(), rows.begin(), rows.end());
    }
    encoder_.mtmd().open(std::move(picture));
  }
  embeddings_ = encoder_.mtmd().encode(next_unit_, should_cancel_);
  n_units_ = 1;
}

void VisualSource::open_film(const PlannedImage& image) {
  if (frames_) return;
  frames_.emplace(image.path, *image.film, image.used_width(), image.used_height(), limits_,
                  should_cancel_);
}

/// A family of tiles: each frame is one.
void VisualSource::encode_frames(const PlannedImage& image) {
  open_film(image);
  const int n = std::min(encoder_batch_, image.n_units() - next_unit_);
  std::vector<media::Rgb8> tiles;
  for (int i = 0; i < n; ++i) tiles.push_back(frames_->next());
  embeddings_ = encoder_.encode(tiles);
  n_units_ = n;
}

/// A family that merges frames: those of a slice are held until its last band is encoded.
void VisualSource::encode_slice(const PlannedImage& image, const PatchPlan& plan) {
  open_film(image);
  const int n_bands = plan.encode.n_units;
  const int band = next_unit_ % n_bands;
  if (band == 0) {
    slice_bands_.clear();
    slice_.clear();
    const int64_t first = int64_t{next_unit_ / n_bands} * image.film->frames_per_slice;
    const int64_t n_left = image.film->frames.n_frames - first;
    const auto n = static_cast<int>(std::min<int64_t>(n_left, image.film->frames_per_slice));
    for (int i = 0; i < n; ++i) slice_.push_back(frames_->next());
    for (int i = 0; i < image.film->frames_per_slice; ++i) {
      slice_bands_.emplace_back(slice_[static_cast<size_t>(std::min(i, n - 1))]);
    }
  }
  std::vector<media::PixelBands*> frames;
  for (media::FrameBands& bands : slice_bands_) frames.push_back(&bands);
  embeddings_ = encoder_.encode(plan.area(band), frames, plan.encode.group, on_progress_);
  n_units_ = 1;
}

}  // namespace plateau::engine

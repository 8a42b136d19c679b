#include "engine/visual_source.h"

#include <algorithm>

#include "base/check.h"
#include "base/stopwatch.h"

namespace plateau::engine {

VisualSource::VisualSource(vision::Encoder& encoder, const std::vector<PlannedImage>& images,
                           const media::ImageLimits& limits, int encoder_batch)
    : encoder_(encoder), images_(images), limits_(limits), encoder_batch_(encoder_batch) {
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
    reader_.reset();
    reader_.emplace(planned.path, planned.grid, limits_);
    open_image_ = image;
    next_unit_ = 0;
  }
  PLATEAU_CHECK(unit == next_unit_);
  const int n = std::min(encoder_batch_, planned.grid.n_tiles() - unit);
  std::vector<media::Rgb8> tiles;
  for (int i = 0; i < n; ++i) {
    std::optional<media::Rgb8> tile = reader_->next();
    PLATEAU_CHECK(tile.has_value());
    tiles.push_back(std::move(*tile));
  }
  embeddings_ = encoder_.encode(tiles);
  first_unit_ = unit;
  n_units_ = n;
  next_unit_ = unit + n;
  tiles_done_ += n;
  if (next_unit_ == planned.grid.n_tiles()) reader_.reset();
  encode_ms_ += watch.ms();
}

}  // namespace plateau::engine

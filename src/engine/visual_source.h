// Embeddings of the prompt's visual units, in prompt order: pictures are opened when their first
// tile is needed, read tile by tile, encoded a batch at a time, and dropped.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "media/image.h"
#include "plateau/options.h"
#include "vision/encoder.h"

namespace plateau::engine {

struct PlannedImage {
  std::string path;
  media::ImageInfo info;
  media::TileGrid grid;
};

/// Where prefill gets the embeddings of visual units from.
class UnitSource {
 public:
  virtual ~UnitSource() = default;
  /// The embeddings of one unit: [n_embd, tokens of the unit], valid until the next call.
  virtual std::span<const float> unit(int medium, int unit) = 0;
};

class VisualSource final : public UnitSource {
 public:
  /// `encoder` and `images` must outlive the source. REQUIRES: encoder_batch >= 1.
  VisualSource(vision::Encoder& encoder, const std::vector<PlannedImage>& images,
               const media::ImageLimits& limits, int encoder_batch);

  /// Units must be asked for in prompt order; the same unit may be asked for again.
  /// Errors: those of TileReader and Encoder::encode.
  std::span<const float> unit(int image, int unit) override;

  int64_t tiles_done() const { return tiles_done_; }
  double encode_ms() const { return encode_ms_; }

 private:
  void encode_from(int image, int unit);

  vision::Encoder& encoder_;
  const std::vector<PlannedImage>& images_;
  media::ImageLimits limits_;
  int encoder_batch_;
  std::optional<media::TileReader> reader_;
  int open_image_ = -1;
  int next_unit_ = 0;   // of the open image, the first that was not read yet
  int first_unit_ = 0;  // of `embeddings_`
  int n_units_ = 0;     // in `embeddings_`
  std::vector<float> embeddings_;
  int64_t tiles_done_ = 0;
  double encode_ms_ = 0;
};

}  // namespace plateau::engine

// Embeddings of the prompt's visual units, in prompt order: pictures are opened when their first
// unit is needed, read tile by tile or band by band, encoded a batch at a time, and dropped.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "media/image.h"
#include "media/pixel_bands.h"
#include "media/token_grid.h"
#include "plateau/options.h"
#include "vision/encode_plan.h"
#include "vision/encoder.h"

namespace plateau::engine {

/// A picture of native size, encoded whole or in bands.
struct PatchPlan {
  media::TokenGrid grid;
  vision::EncodePlan encode;

  /// What unit `unit` covers.
  vision::PatchArea area(int unit) const;
};

struct PlannedImage {
  std::string path;
  media::ImageInfo info;
  std::variant<media::TileGrid, PatchPlan> cut;

  int n_units() const;
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
  /// `encoder` and `images` must outlive the source. `on_progress` (may be empty) sees the share of
  /// the unit in hand that is encoded. REQUIRES: encoder_batch >= 1.
  VisualSource(vision::Encoder& encoder, const std::vector<PlannedImage>& images,
               const media::ImageLimits& limits, int encoder_batch,
               std::function<void(double)> on_progress = {});

  /// Units must be asked for in prompt order; the same unit may be asked for again.
  /// Errors: those of TileReader, BandReader and Encoder::encode.
  std::span<const float> unit(int image, int unit) override;

  int64_t units_done() const { return units_done_; }
  double encode_ms() const { return encode_ms_; }

 private:
  void encode_from(int image, int unit);
  void encode_tiles(const PlannedImage& image, const media::TileGrid& grid);
  void encode_band(const PlannedImage& image, const PatchPlan& plan);

  vision::Encoder& encoder_;
  const std::vector<PlannedImage>& images_;
  media::ImageLimits limits_;
  int encoder_batch_;
  std::function<void(double)> on_progress_;
  std::optional<media::TileReader> tiles_;
  std::optional<media::BandReader> bands_;
  int open_image_ = -1;
  int next_unit_ = 0;   // of the open image, the first that was not read yet
  int first_unit_ = 0;  // of `embeddings_`
  int n_units_ = 0;     // in `embeddings_`
  std::vector<float> embeddings_;
  int64_t units_done_ = 0;
  double encode_ms_ = 0;
};

}  // namespace plateau::engine

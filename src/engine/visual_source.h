// Embeddings of the prompt's visual units, in prompt order: pictures are opened when their first
// unit is needed, read tile by tile or band by band, films frame by frame,
// encoded a batch at a time, and dropped.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engine/film_frames.h"
#include "engine/film_plan.h"
#include "engine/visual_layout.h"
#include "media/image.h"
#include "media/pixel_bands.h"
#include "media/token_grid.h"
#include "plateau/options.h"
#include "vision/encode_plan.h"
#include "vision/encoder.h"

namespace plateau::engine {

/// Rows read at once of a picture that is held whole.
inline constexpr int kPictureRows = 64;

/// A picture of native size, encoded whole or in bands.
struct PatchPlan {
  media::TokenGrid grid;
  vision::EncodePlan encode;

  /// What unit `unit` covers.
  vision::PatchArea area(int unit) const;
};

/// A picture that libmtmd cuts, read whole and encoded chunk by chunk.
struct ChunkPlan {
  VisualLayout layout;
  int64_t encoder_bytes = 0;  // MtmdEncoder::scratch_bytes()
};

/// A picture or film.
struct PlannedImage {
  std::string path;
  media::ImageInfo info;                                    // of a film: its frames'
  std::variant<media::TileGrid, PatchPlan, ChunkPlan> cut;  // of a film: how each slice is cut
  std::optional<FilmPlan> film = {};

  /// Of the picture, or of one slice.
  int n_units_per_slice() const;
  int n_units() const;
  // After the resize.
  int used_width() const;
  int used_height() const;
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
  /// the unit in hand that is encoded; `should_cancel` (may be empty) is polled while a film is
  /// decoded. REQUIRES: encoder_batch >= 1.
  VisualSource(vision::Encoder& encoder, const std::vector<PlannedImage>& images,
               const media::ImageLimits& limits, int encoder_batch,
               std::function<void(double)> on_progress = {},
               std::function<bool()> should_cancel = {});
  /// Drops what the encoder holds of a picture that was not finished.
  ~VisualSource() override { close(); }
  VisualSource(const VisualSource&) = delete;
  VisualSource& operator=(const VisualSource&) = delete;

  /// Units must be asked for in prompt order; the same unit may be asked for again.
  /// Errors: those of TileReader, BandReader and Encoder::encode.
  std::span<const float> unit(int image, int unit) override;

  int64_t units_done() const { return units_done_; }
  double encode_ms() const { return encode_ms_; }
  /// Most bytes that reading a film took, as counted.
  int64_t film_bytes() const { return film_bytes_; }
  /// What films were read with damage, so far: which one, how often, and in words.
  struct FilmDamage {
    int medium = 0;
    int64_t n_damaged = 0;
    std::string text;
  };
  const std::vector<FilmDamage>& film_damage() const { return film_damage_; }

 private:
  void encode_from(int image, int unit);
  void close();
  void encode_tiles(const PlannedImage& image, const media::TileGrid& grid);
  void encode_band(const PlannedImage& image, const PatchPlan& plan);
  void encode_chunk(const PlannedImage& image);
  void open_film(const PlannedImage& image);
  void encode_frames(const PlannedImage& image);
  void encode_slice(const PlannedImage& image, const PatchPlan& plan);

  vision::Encoder& encoder_;
  const std::vector<PlannedImage>& images_;
  media::ImageLimits limits_;
  int encoder_batch_;
  std::function<void(double)> on_progress_;
  std::function<bool()> should_cancel_;
  std::optional<media::TileReader> tiles_;
  std::optional<media::BandReader> bands_;
  std::optional<FilmFrames> frames_;
  // The slice under way, whose bands pull its rows.
  std::vector<media::Rgb8> slice_;
  std::vector<media::FrameBands> slice_bands_;
  int open_image_ = -1;
  int next_unit_ = 0;   // of the open image, the first that was not read yet
  int first_unit_ = 0;  // of `embeddings_`
  int n_units_ = 0;     // in `embeddings_`
  std::vector<float> embeddings_;
  int64_t units_done_ = 0;
  double encode_ms_ = 0;
  int64_t film_bytes_ = 0;
  std::vector<FilmDamage> film_damage_;
};

}  // namespace plateau::engine

// Encodes pictures into embeddings of the language model. In bounded memory: InternVL's a batch of
// tiles at a time, Qwen2.5-VL's a band of any size at a time. Through llama.cpp's library, whose
// memory is not bounded: other projectors, a chunk at a time. Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "media/image.h"
#include "media/pixel_bands.h"
#include "model/backend.h"
#include "model/language_model.h"
#include "model/vision_config.h"
#include "model/weights.h"
#include "vision/encode_plan.h"
#include "vision/mtmd_encoder.h"
#include "vision/towers/qwen25vl.h"

namespace plateau::vision {

class Encoder {
 public:
  /// Loads the projector file `path`; only one that libmtmd runs needs the text model, and is
  /// loaded for planning, too. `backends` and `text_model` must outlive the encoder. Errors: those
  /// of GgufFile::open, read_vision_config, GgufWeights and MtmdEncoder; kInvalidArgument (no text
  /// model where it is needed).
  Encoder(const std::string& path, const model::Backends& backends,
          model::WeightUse use = model::WeightUse::kCompute,
          const model::LanguageModel* text_model = nullptr);

  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  const model::VisionConfig& config() const { return config_; }

  /// InternVL: [n_embd_out, tokens_per_tile * n_tiles], tiles in order, tokens of a tile in reading
  /// order. REQUIRES: every tile is tile_size x tile_size. Errors: kResourceExhausted, kCancelled.
  std::vector<float> encode(std::span<const media::Rgb8> tiles);

  const model::WeightBytes& weight_bytes() const {
    return mtmd_ ? mtmd_->weight_bytes() : weights_->bytes();
  }
  /// InternVL: what encode() allocates for a batch of tiles: on devices, and in vectors of the
  /// host's, embeddings included. Also without weights.
  std::vector<model::DeviceBytes> measure(int n_tiles) const;
  int64_t host_bytes(int n_tiles) const;

  /// Qwen2.5-VL: as Qwen25VlTower::encode(), a still picture or two frames of a film.
  std::vector<float> encode(const PatchArea& area, std::span<media::PixelBands* const> frames,
                            int group, const std::function<void(double)>& on_progress);

  /// REQUIRES: a projector that libmtmd runs.
  MtmdEncoder& mtmd();
  const MtmdEncoder& mtmd() const;

  /// InternVL: compute buffers held now. Qwen2.5-VL: the most bytes held at once by encode(), all
  /// that encoder_scratch_bytes() plans. libmtmd: MtmdEncoder::peak_bytes().
  int64_t peak_bytes() const;

 private:
  Encoder(const model::GgufFile& file, const model::Backends& backends, model::WeightUse use,
          const model::LanguageModel* text_model);

  const model::Backends& backends_;
  model::VisionConfig config_;
  std::optional<model::GgufWeights> weights_;  // of a tower of ours
  ggml_backend_sched_ptr sched_;
  std::vector<float> pixels_;
  std::optional<Qwen25VlTower> qwen25vl_;
  std::optional<MtmdEncoder> mtmd_;
};

/// Planar channel values as the tower wants them: (value / 255 - mean) / std.
/// out: [width, height, 3], ggml order.
void normalize_pixels(const media::Rgb8& tile, const model::VisionConfig& config,
                      std::span<float> out);

}  // namespace plateau::vision

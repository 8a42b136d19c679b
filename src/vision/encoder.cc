#include "vision/encoder.h"

#include "base/check.h"
#include "vision/towers/internvit.h"
#include "vision/towers/qwen25vl_graph.h"

namespace plateau::vision {
namespace {

size_t max_nodes(const model::VisionConfig& config) {
  return config.is_internvl() ? internvit_max_nodes(config) : qwen25vl_max_nodes(config);
}

}  // namespace

void normalize_pixels(const media::Rgb8& tile, const model::VisionConfig& config,
                      std::span<float> out) {
  const size_t plane = static_cast<size_t>(tile.width) * static_cast<size_t>(tile.height);
  PLATEAU_CHECK(tile.pixels.size() == 3 * plane && out.size() == 3 * plane);
  for (size_t channel = 0; channel < 3; ++channel) {
    const float mean = config.image_mean[channel];
    const float std = config.image_std[channel];
    float* row = out.data() + channel * plane;
    for (size_t i = 0; i < plane; ++i) {
      row[i] = (static_cast<float>(tile.pixels[3 * i + channel]) / 255.0f - mean) / std;
    }
  }
}

Encoder::Encoder(const std::string& path, const model::Backends& backends, model::WeightUse use,
                 const model::LanguageModel* text_model)
    : Encoder(model::GgufFile::open(path), backends, use, text_model) {}

Encoder::Encoder(const model::GgufFile& file, const model::Backends& backends, model::WeightUse use,
                 const model::LanguageModel* text_model)
    : backends_(backends), config_(model::read_vision_config(file)) {
  if (config_.is_mtmd()) {
    if (text_model == nullptr) {
      throw_error(ErrorCode::kInvalidArgument,
                  "[{}] expected a text model beside a {} projector, got none", file.path(),
                  config_.projector_type);
    }
    mtmd_.emplace(file.path(), config_, backends_, *text_model);
    return;
  }
  weights_.emplace(file, backends.device(), use);
  sched_ = backends.new_scheduler(max_nodes(config_));
  if (config_.is_qwen25vl()) {
    qwen25vl_.emplace(config_, weights_->map(), backends_, sched_.get());
  }
}

MtmdEncoder& Encoder::mtmd() {
  PLATEAU_CHECK(mtmd_.has_value());
  return *mtmd_;
}

const MtmdEncoder& Encoder::mtmd() const {
  PLATEAU_CHECK(mtmd_.has_value());
  return *mtmd_;
}

std::vector<float> Encoder::encode(std::span<const media::Rgb8> tiles) {
  PLATEAU_CHECK(!tiles.empty());
  const auto side = static_cast<size_t>(config_.internvl().tile_size);
  const size_t tile_values = 3 * side * side;
  pixels_.resize(tile_values * tiles.size());
  for (size_t i = 0; i < tiles.size(); ++i) {
    PLATEAU_CHECK(tiles[i].width == static_cast<int>(side) &&
                  tiles[i].height == static_cast<int>(side));
    normalize_pixels(tiles[i], config_, std::span(pixels_).subspan(i * tile_values, tile_values));
  }
  const TowerGraph tower =
      build_internvit(config_, weights_->map(), static_cast<int>(tiles.size()));
  backends_.compute(sched_.get(), tower.graph, [&] {
    ggml_backend_tensor_set(tower.pixels, pixels_.data(), 0, pixels_.size() * sizeof(float));
  });
  std::vector<float> embeddings(static_cast<size_t>(ggml_nelements(tower.embeddings)));
  ggml_backend_tensor_get(tower.embeddings, embeddings.data(), 0,
                          embeddings.size() * sizeof(float));
  return embeddings;
}

std::vector<model::DeviceBytes> Encoder::measure(int n_tiles) const {
  const TowerGraph tower = build_internvit(config_, weights_->map(), n_tiles);
  // A scheduler that has measured holds no buffers for what it then takes for allocated.
  const ggml_backend_sched_ptr sched = backends_.new_scheduler(max_nodes(config_));
  return backends_.measure(sched.get(), tower.graph);
}

int64_t Encoder::host_bytes(int n_tiles) const {
  const int64_t side = config_.internvl().tile_size;
  const int64_t n_values = int64_t{3} * side * side;
  const int64_t n_embeddings = int64_t{config_.tokens_per_tile()} * config_.n_embd_out;
  return n_tiles * (n_values * static_cast<int64_t>(sizeof(uint8_t) + sizeof(float)) +
                    2 * n_embeddings * static_cast<int64_t>(sizeof(float)));
}

std::vector<float> Encoder::encode(const PatchArea& area,
                                   std::span<media::PixelBands* const> frames, int group,
                                   const std::function<void(double)>& on_progress) {
  PLATEAU_CHECK(qwen25vl_.has_value());
  return qwen25vl_->encode(area, frames, group, on_progress);
}

int64_t Encoder::peak_bytes() const {
  if (mtmd_) return mtmd_->peak_bytes();
  return qwen25vl_ ? qwen25vl_->peak_bytes() : model::scheduler_bytes(sched_.get());
}

}  // namespace plateau::vision

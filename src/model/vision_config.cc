#include "model/vision_config.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "model/vision_family.h"

namespace plateau::model {
namespace {

constexpr int64_t kMaxLayers = 256;

struct Family {
  const char* projector_type;
  int frames_per_unit;
  void (*read)(const GgufFile&, VisionConfig&);
};

constexpr Family kFamilies[] = {
    {"internvl", 1, read_internvl},    {"qwen2.5vl_merger", 2, read_qwen25vl},
    {"mlp", 1, read_mtmd_llava},       {"idefics3", 1, read_mtmd_idefics3},
    {"janus_pro", 1, read_mtmd_janus},
};

const Family& find_family(const GgufFile& file) {
  const std::string type =
      file.find_string("clip.projector_type")
          .value_or(file.find_string("clip.vision.projector_type").value_or(""));
  std::string known;
  for (const Family& family : kFamilies) {
    if (type == family.projector_type) return family;
    known += (known.empty() ? "" : ", ") + std::string(family.projector_type);
  }
  refuse_mtmd_type(file, type);
  throw_error(ErrorCode::kUnsupported, "[{}] expected clip.projector_type to be one of {}, got {}",
              file.path(), known, type.empty() ? "none" : type);
}

std::array<float, 3> read_channels(const GgufFile& file, const std::string& key, bool positive) {
  const auto values = file.find_float_array(key);
  if (!values || values->size() != 3) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected key {} to hold 3 numbers, got {}", file.path(),
                key, values ? values->size() : 0);
  }
  for (const float value : *values) {
    if (!std::isfinite(value) || (positive && value <= 0)) {
      throw_error(ErrorCode::kCorrupt, "[{}] expected key {} to hold {} numbers, got {}",
                  file.path(), key, positive ? "positive" : "finite", value);
    }
  }
  return {(*values)[0], (*values)[1], (*values)[2]};
}

void read_heads(const GgufFile& file, VisionConfig& config) {
  config.n_head = vision_int(file, "attention.head_count", config.n_embd);
  const std::string kv_key = "clip.vision.attention.head_count_kv";
  const int64_t n_head_kv = file.find_int(kv_key, 0, kMaxVisionWidth).value_or(config.n_head);
  if (n_head_kv != config.n_head) {
    throw_error(ErrorCode::kUnsupported, "[{}] expected key {} to be {}, got {}", file.path(),
                kv_key, config.n_head, n_head_kv);
  }
  if (config.n_embd % config.n_head != 0) {
    throw_error(ErrorCode::kCorrupt,
                "[{}] expected clip.vision.attention.head_count to divide {}, got {}", file.path(),
                config.n_embd, config.n_head);
  }
}

}  // namespace

int vision_int(const GgufFile& file, const char* key, int64_t max) {
  return static_cast<int>(file.get_int(std::string("clip.vision.") + key, 1, max));
}

bool any_layer_has(const GgufFile& file, std::string_view part) {
  return std::any_of(file.tensors().begin(), file.tensors().end(), [&](const TensorInfo& tensor) {
    return tensor.name.starts_with("v.blk.") && tensor.name.ends_with(fmt::format(".{}", part));
  });
}

int read_n_embd_out(const GgufFile& file, const std::string& matrix) {
  const TensorInfo* projector = file.find_tensor(matrix);
  if (projector == nullptr) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected tensor {}, found none", file.path(), matrix);
  }
  if (projector->ne[1] < 1 || projector->ne[1] > kMaxVisionWidth) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected 1 to {} rows in {}, got {}", file.path(),
                kMaxVisionWidth, matrix, projector->ne[1]);
  }
  return static_cast<int>(projector->ne[1]);
}

void require_activation(const GgufFile& file, Activation activation) {
  const bool gelu = file.find_bool("clip.use_gelu").value_or(false);
  const bool silu = file.find_bool("clip.use_silu").value_or(false);
  const bool wants_gelu = activation == Activation::kGelu;
  if (gelu != wants_gelu || silu == wants_gelu) {
    throw_error(ErrorCode::kUnsupported, "[{}] expected clip.{} true and no clip.{}, got {} and {}",
                file.path(), wants_gelu ? "use_gelu" : "use_silu",
                wants_gelu ? "use_silu" : "use_gelu", wants_gelu ? gelu : silu,
                wants_gelu ? silu : gelu);
  }
}

const InternVlVision& VisionConfig::internvl() const {
  PLATEAU_CHECK(std::holds_alternative<InternVlVision>(family));
  return *std::get_if<InternVlVision>(&family);
}

const Qwen25VlVision& VisionConfig::qwen25vl() const {
  PLATEAU_CHECK(std::holds_alternative<Qwen25VlVision>(family));
  return *std::get_if<Qwen25VlVision>(&family);
}

const MtmdVision& VisionConfig::mtmd() const {
  PLATEAU_CHECK(std::holds_alternative<MtmdVision>(family));
  return *std::get_if<MtmdVision>(&family);
}

VisionConfig read_vision_config(const GgufFile& file) {
  const std::string arch = file.get_string("general.architecture");
  if (arch != "clip") {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected a vision projector (general.architecture clip), got {}; try passing "
                "it as -m",
                file.path(), arch);
  }
  if (!file.find_bool("clip.has_vision_encoder").value_or(false)) {
    throw_error(ErrorCode::kUnsupported, "[{}] expected a vision encoder, the file has none",
                file.path());
  }
  const Family& family = find_family(file);
  VisionConfig config;
  config.projector_type = family.projector_type;
  config.frames_per_unit = family.frames_per_unit;
  config.name = file.find_string("general.name").value_or("");
  config.patch_size = vision_int(file, "patch_size", kMaxVisionSide);
  config.n_embd = vision_int(file, "embedding_length", kMaxVisionWidth);
  config.n_layer = vision_int(file, "block_count", kMaxLayers);
  config.n_ff = vision_int(file, "feed_forward_length", kMaxVisionWidth);
  read_heads(file, config);
  const auto eps = static_cast<float>(file.get_float("clip.vision.attention.layer_norm_epsilon"));
  if (!std::isfinite(eps) || eps <= 0) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected a positive layer_norm_epsilon, got {}",
                file.path(), eps);
  }
  config.norm_eps = eps;
  config.image_mean = read_channels(file, "clip.vision.image_mean", /*positive=*/false);
  config.image_std = read_channels(file, "clip.vision.image_std", /*positive=*/true);
  family.read(file, config);
  return config;
}

}  // namespace plateau::model

// Reading one family's part of a vision projector; called by read_vision_config() once the common
// keys are read.
#pragma once

#include <string>
#include <string_view>

#include "model/vision_config.h"

namespace plateau::model {

inline constexpr int64_t kMaxVisionSide = 4096;
inline constexpr int64_t kMaxVisionWidth = 1 << 16;

/// A positive integer under "clip.vision.".
int vision_int(const GgufFile& file, const char* key, int64_t max);

/// Whether any layer has this part. What one layer has, all must have: a hole is damage.
bool any_layer_has(const GgufFile& file, std::string_view part);

/// The width that the projector's last matrix makes.
int read_n_embd_out(const GgufFile& file, const std::string& matrix);

/// Throws kUnsupported where libmtmd knows the projector type, but it cannot be run: naming why.
void refuse_mtmd_type(const GgufFile& file, std::string_view projector_type);

/// Throws kUnsupported unless the file asks for this activation.
enum class Activation { kGelu, kSilu };
void require_activation(const GgufFile& file, Activation activation);

/// Fill in `family` and n_embd_out and check all tensors. Errors: as read_vision_config().
void read_internvl(const GgufFile& file, VisionConfig& config);
void read_qwen25vl(const GgufFile& file, VisionConfig& config);
void read_mtmd_llava(const GgufFile& file, VisionConfig& config);
void read_mtmd_idefics3(const GgufFile& file, VisionConfig& config);
void read_mtmd_janus(const GgufFile& file, VisionConfig& config);

}  // namespace plateau::model

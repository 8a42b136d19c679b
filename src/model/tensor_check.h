// Shape and type checks of the tensors that a graph reads: what passes here cannot reach an
// assertion of ggml.
#pragma once

#include <string>
#include <vector>

#include "model/gguf_file.h"

namespace plateau::model {

/// A weight matrix: F32, F16, BF16 or a quantised type that ggml can multiply with.
void require_matrix(const GgufFile& file, const std::string& name, const std::vector<int64_t>& ne);

/// A norm, bias or table that is added or multiplied elementwise: F32.
void require_f32(const GgufFile& file, const std::string& name, const std::vector<int64_t>& ne);

/// A convolution kernel: F16 or F32.
void require_kernel(const GgufFile& file, const std::string& name, const std::vector<int64_t>& ne);

}  // namespace plateau::model

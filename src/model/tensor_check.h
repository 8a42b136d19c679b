// Shape and type checks of the tensors that a graph reads: what passes here cannot reach an
// assertion of ggml.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "model/gguf_file.h"

namespace plateau::model {

/// Checks the tensors of one file by name and remembers which it has seen.
/// Errors of the checks: kCorrupt (absent, wrong shape), kUnsupported (type).
class TensorCheck {
 public:
  /// The file must outlive the check.
  explicit TensorCheck(const GgufFile& file) : file_(file) {}

  /// A weight matrix: F32, F16, BF16 or a quantised type that ggml can multiply with.
  void matrix(const std::string& name, const std::vector<int64_t>& ne);
  /// A norm, bias or table that is added or multiplied elementwise: F32.
  void f32(const std::string& name, const std::vector<int64_t>& ne);
  /// A convolution kernel: F16 or F32.
  void kernel(const std::string& name, const std::vector<int64_t>& ne);

  /// Throws kUnsupported when the file holds a tensor that no check has named: the graph would
  /// leave it out and compute something else than the model.
  void refuse_others() const;

 private:
  const TensorInfo& require(const std::string& name, const std::vector<int64_t>& ne);

  const GgufFile& file_;
  std::unordered_set<std::string> seen_;
};

}  // namespace plateau::model

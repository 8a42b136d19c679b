#include "model/tensor_check.h"

#include "base/check.h"

namespace plateau::model {
namespace {

[[noreturn]] void wrong_type(const GgufFile& file, const TensorInfo& tensor, const char* expected) {
  throw_error(ErrorCode::kUnsupported, "[{}] expected tensor {} to be {}, got {}", file.path(),
              tensor.name, expected, ggml_type_name(tensor.type));
}

bool is_matrix_type(ggml_type type) {
  switch (type) {
    case GGML_TYPE_F32:
    case GGML_TYPE_F16:
    case GGML_TYPE_BF16:
      return true;
    case GGML_TYPE_Q8_1:  // these two are made on the fly for the other operand only
    case GGML_TYPE_Q8_K:
      return false;
    default:
      return ggml_is_quantized(type);
  }
}

}  // namespace

const TensorInfo& TensorCheck::require(const std::string& name, const std::vector<int64_t>& ne) {
  seen_.insert(name);
  return file_.require_tensor(name, ne);
}

void TensorCheck::matrix(const std::string& name, const std::vector<int64_t>& ne) {
  const TensorInfo& tensor = require(name, ne);
  if (!is_matrix_type(tensor.type)) {
    wrong_type(file_, tensor, "a floating-point or quantised matrix");
  }
}

void TensorCheck::f32(const std::string& name, const std::vector<int64_t>& ne) {
  const TensorInfo& tensor = require(name, ne);
  if (tensor.type != GGML_TYPE_F32) wrong_type(file_, tensor, "f32");
}

void TensorCheck::kernel(const std::string& name, const std::vector<int64_t>& ne) {
  const TensorInfo& tensor = require(name, ne);
  if (tensor.type != GGML_TYPE_F32 && tensor.type != GGML_TYPE_F16) {
    wrong_type(file_, tensor, "f16 or f32");
  }
}

void TensorCheck::refuse_others() const {
  for (const TensorInfo& tensor : file_.tensors()) {
    if (seen_.contains(tensor.name)) continue;
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected only the tensors of this architecture, got {} {}", file_.path(),
                tensor.name, shape_to_string(tensor.ne));
  }
}

}  // namespace plateau::model

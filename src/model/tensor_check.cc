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

void require_matrix(const GgufFile& file, const std::string& name, const std::vector<int64_t>& ne) {
  const TensorInfo& tensor = file.require_tensor(name, ne);
  if (!is_matrix_type(tensor.type))
    wrong_type(file, tensor, "a floating-point or quantised matrix");
}

void require_f32(const GgufFile& file, const std::string& name, const std::vector<int64_t>& ne) {
  const TensorInfo& tensor = file.require_tensor(name, ne);
  if (tensor.type != GGML_TYPE_F32) wrong_type(file, tensor, "f32");
}

void require_kernel(const GgufFile& file, const std::string& name, const std::vector<int64_t>& ne) {
  const TensorInfo& tensor = file.require_tensor(name, ne);
  if (tensor.type != GGML_TYPE_F32 && tensor.type != GGML_TYPE_F16) {
    wrong_type(file, tensor, "f16 or f32");
  }
}

}  // namespace plateau::model

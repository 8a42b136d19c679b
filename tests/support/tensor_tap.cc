#include "support/tensor_tap.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace plateau::test {
namespace {

// One row, [ne[0]], to floats.
void convert_row(ggml_type type, const uint8_t* row, size_t stride, std::vector<float>& out,
                 int64_t n) {
  const ggml_type_traits* traits = ggml_get_type_traits(type);
  const size_t at = out.size();
  out.resize(at + static_cast<size_t>(n));
  if (stride == traits->type_size && traits->to_float != nullptr) {
    traits->to_float(row, &out[at], n);
    return;
  }
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    const uint8_t* element = row + i * stride;
    switch (type) {
      case GGML_TYPE_F32:
        std::memcpy(&out[at + i], element, sizeof(float));
        break;
      case GGML_TYPE_F16: {
        ggml_fp16_t half = 0;
        std::memcpy(&half, element, sizeof(half));
        out[at + i] = ggml_fp16_to_fp32(half);
        break;
      }
      case GGML_TYPE_I32: {
        int32_t value = 0;
        std::memcpy(&value, element, sizeof(value));
        out[at + i] = static_cast<float>(value);
        break;
      }
      case GGML_TYPE_I64: {
        int64_t value = 0;
        std::memcpy(&value, element, sizeof(value));
        out[at + i] = static_cast<float>(value);
        break;
      }
      default:
        throw_error(ErrorCode::kUnsupported, "[tensor_tap] expected f32, f16 or integers, got {}",
                    ggml_type_name(type));
    }
  }
}

TappedTensor copy(const ggml_tensor* tensor) {
  TappedTensor result{.name = tensor->name, .op = tensor->op, .type = tensor->type};
  std::copy_n(tensor->ne, GGML_MAX_DIMS, result.ne.begin());
  std::vector<uint8_t> bytes(ggml_nbytes(tensor));  // from the first element to the last, strided
  ggml_backend_tensor_get(tensor, bytes.data(), 0, bytes.size());
  for (int64_t i3 = 0; i3 < tensor->ne[3]; ++i3) {
    for (int64_t i2 = 0; i2 < tensor->ne[2]; ++i2) {
      for (int64_t i1 = 0; i1 < tensor->ne[1]; ++i1) {
        const size_t offset = static_cast<size_t>(i1) * tensor->nb[1] +
                              static_cast<size_t>(i2) * tensor->nb[2] +
                              static_cast<size_t>(i3) * tensor->nb[3];
        convert_row(tensor->type, bytes.data() + offset, tensor->nb[0], result.values,
                    tensor->ne[0]);
      }
    }
  }
  return result;
}

}  // namespace

void TensorTap::want(std::set<std::string> names) {
  all_ = false;
  names_ = std::move(names);
}

void TensorTap::want_all() { all_ = true; }

void TensorTap::want_nothing() { want({}); }

const TappedTensor& TensorTap::find(const std::string& name) const {
  const auto found = std::find_if(tensors_.rbegin(), tensors_.rend(),
                                  [&](const TappedTensor& t) { return t.name == name; });
  if (found != tensors_.rend()) return *found;
  std::string known;
  for (const TappedTensor& t : tensors_) known += ' ' + t.name;
  throw_error(ErrorCode::kNotFound, "[tensor_tap] expected tensor {}, got:{}", name, known);
}

bool TensorTap::callback(ggml_tensor* tensor, bool ask, void* tap) {
  auto* self = static_cast<TensorTap*>(tap);
  if (ask) return self->wants(tensor);
  self->tensors_.push_back(copy(tensor));
  return true;
}

bool TensorTap::wants(const ggml_tensor* tensor) const {
  if (!all_) return names_.contains(tensor->name);
  // ggml itself names unnamed nodes "node_12" and derived ones "x (view)".
  const std::string name = tensor->name;
  return !name.empty() && !name.starts_with("node_") && name.find(" (") == std::string::npos;
}

}  // namespace plateau::test

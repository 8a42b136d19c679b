#include "model/gguf_file.h"

#include <filesystem>

#include "base/check.h"
#include "gguf.h"
#include "model/log_capture.h"

namespace plateau::model {
namespace {

std::optional<int64_t> int_value(const gguf_context* gguf, int64_t id) {
  switch (gguf_get_kv_type(gguf, id)) {
    case GGUF_TYPE_UINT8:
      return gguf_get_val_u8(gguf, id);
    case GGUF_TYPE_INT8:
      return gguf_get_val_i8(gguf, id);
    case GGUF_TYPE_UINT16:
      return gguf_get_val_u16(gguf, id);
    case GGUF_TYPE_INT16:
      return gguf_get_val_i16(gguf, id);
    case GGUF_TYPE_UINT32:
      return gguf_get_val_u32(gguf, id);
    case GGUF_TYPE_INT32:
      return gguf_get_val_i32(gguf, id);
    case GGUF_TYPE_UINT64: {
      const uint64_t value = gguf_get_val_u64(gguf, id);
      return value > uint64_t{INT64_MAX} ? INT64_MAX : static_cast<int64_t>(value);
    }
    case GGUF_TYPE_INT64:
      return gguf_get_val_i64(gguf, id);
    default:
      return std::nullopt;
  }
}

std::string trimmed_shape(const std::vector<int64_t>& ne) {
  std::array<int64_t, 4> full = {1, 1, 1, 1};
  for (size_t i = 0; i < ne.size() && i < full.size(); ++i) full[i] = ne[i];
  return shape_to_string(full);
}

}  // namespace

std::string shape_to_string(const std::array<int64_t, 4>& ne) {
  size_t n = ne.size();
  while (n > 1 && ne[n - 1] == 1) --n;
  return fmt::format("[{}]",
                     fmt::join(ne.begin(), ne.begin() + static_cast<std::ptrdiff_t>(n), ", "));
}

GgufFile GgufFile::open(const std::string& path) {
  std::error_code ec;
  const auto status = std::filesystem::status(path, ec);
  if (!std::filesystem::exists(status)) {
    throw_error(ErrorCode::kNotFound, "[{}] expected a GGUF file, found nothing there", path);
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw_error(ErrorCode::kUnsupported, "[{}] expected a GGUF file, got a {}", path,
                std::filesystem::is_directory(status) ? "directory" : "special file");
  }
  const LogCapture log;
  gguf_context_ptr gguf(gguf_init_from_file(path.c_str(), {/*no_alloc=*/true, /*ctx=*/nullptr}));
  if (!gguf) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected a GGUF file, got something else: {}", path,
                log.first_error("the header cannot be read"));
  }
  return GgufFile(path, std::move(gguf));
}

GgufFile::GgufFile(std::string path, gguf_context_ptr gguf)
    : path_(std::move(path)), gguf_(std::move(gguf)) {
  const auto n_tensors = gguf_get_n_tensors(gguf_.get());
  const uint64_t data_offset = gguf_get_data_offset(gguf_.get());
  constexpr size_t kMinAlignment = 32;  // ggml's; tensors are read where they are mapped
  if (gguf_get_alignment(gguf_.get()) < kMinAlignment) {
    throw_error(ErrorCode::kUnsupported, "[{}] expected general.alignment of at least {}, got {}",
                path_, kMinAlignment, gguf_get_alignment(gguf_.get()));
  }
  const uint64_t file_size = std::filesystem::file_size(path_);
  for (int64_t i = 0; i < n_tensors; ++i) {
    TensorInfo info;
    info.name = gguf_get_tensor_name(gguf_.get(), i);
    const int64_t* ne = gguf_get_tensor_ne(gguf_.get(), i);
    std::copy(ne, ne + 4, info.ne.begin());
    info.type = gguf_get_tensor_type(gguf_.get(), i);
    info.file_offset = data_offset + gguf_get_tensor_offset(gguf_.get(), i);
    info.n_bytes = gguf_get_tensor_size(gguf_.get(), i);
    if (info.file_offset > file_size || info.n_bytes > file_size - info.file_offset) {
      throw_error(
          ErrorCode::kCorrupt,
          "[{}] expected {} bytes for tensor {}, the file ends before; it is truncated, try "
          "downloading it again",
          path_, info.n_bytes, info.name);
    }
    tensor_index_.emplace(info.name, tensors_.size());
    tensors_.push_back(std::move(info));
  }
}

int64_t GgufFile::find_key(const std::string& key) const {
  return gguf_find_key(gguf_.get(), key.c_str());
}

bool GgufFile::has(const std::string& key) const { return find_key(key) >= 0; }

void GgufFile::require_type(const std::string& key, gguf_type type) const {
  const int64_t id = find_key(key);
  if (id >= 0 && gguf_get_kv_type(gguf_.get(), id) != type) wrong_type(key, gguf_type_name(type));
}

bool GgufFile::is_array(const std::string& key) const {
  const int64_t id = find_key(key);
  return id >= 0 && gguf_get_kv_type(gguf_.get(), id) == GGUF_TYPE_ARRAY;
}

void GgufFile::wrong_type(const std::string& key, std::string_view expected) const {
  const int64_t id = find_key(key);
  if (id < 0) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected key {} ({}), found none", path_, key, expected);
  }
  throw_error(ErrorCode::kCorrupt, "[{}] expected key {} to be {}, got {}", path_, key, expected,
              gguf_type_name(gguf_get_kv_type(gguf_.get(), id)));
}

void GgufFile::wrong_array_type(const std::string& key, std::string_view expected) const {
  throw_error(ErrorCode::kCorrupt, "[{}] expected key {} to be an array of {}, got one of {}",
              path_, key, expected, gguf_type_name(gguf_get_arr_type(gguf_.get(), find_key(key))));
}

std::optional<std::string> GgufFile::find_string(const std::string& key) const {
  const int64_t id = find_key(key);
  if (id < 0) return std::nullopt;
  if (gguf_get_kv_type(gguf_.get(), id) != GGUF_TYPE_STRING) wrong_type(key, "a string");
  return gguf_get_val_str(gguf_.get(), id);
}

std::optional<int64_t> GgufFile::find_int(const std::string& key, int64_t min, int64_t max) const {
  const int64_t id = find_key(key);
  if (id < 0) return std::nullopt;
  const auto value = int_value(gguf_.get(), id);
  if (!value) wrong_type(key, "an integer");
  if (*value < min || *value > max) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected key {} between {} and {}, got {}", path_, key,
                min, max, *value);
  }
  return value;
}

std::optional<double> GgufFile::find_float(const std::string& key) const {
  const int64_t id = find_key(key);
  if (id < 0) return std::nullopt;
  switch (gguf_get_kv_type(gguf_.get(), id)) {
    case GGUF_TYPE_FLOAT32:
      return gguf_get_val_f32(gguf_.get(), id);
    case GGUF_TYPE_FLOAT64:
      return gguf_get_val_f64(gguf_.get(), id);
    default:
      wrong_type(key, "a float");
  }
}

std::optional<bool> GgufFile::find_bool(const std::string& key) const {
  const int64_t id = find_key(key);
  if (id < 0) return std::nullopt;
  if (gguf_get_kv_type(gguf_.get(), id) != GGUF_TYPE_BOOL) wrong_type(key, "a bool");
  return gguf_get_val_bool(gguf_.get(), id);
}

std::optional<int64_t> GgufFile::find_array_size(const std::string& key) const {
  const int64_t id = find_key(key);
  if (id < 0) return std::nullopt;
  if (gguf_get_kv_type(gguf_.get(), id) != GGUF_TYPE_ARRAY) wrong_type(key, "an array");
  return static_cast<int64_t>(gguf_get_arr_n(gguf_.get(), id));
}

std::optional<std::vector<float>> GgufFile::find_float_array(const std::string& key) const {
  const auto n = find_array_size(key);
  if (!n) return std::nullopt;
  const int64_t id = find_key(key);
  if (gguf_get_arr_type(gguf_.get(), id) != GGUF_TYPE_FLOAT32) {
    wrong_array_type(key, "f32");
  }
  const auto* data = static_cast<const float*>(gguf_get_arr_data(gguf_.get(), id));
  return std::vector<float>(data, data + *n);
}

std::optional<std::vector<int64_t>> GgufFile::find_int_array(const std::string& key) const {
  const auto n = find_array_size(key);
  if (!n) return std::nullopt;
  const int64_t id = find_key(key);
  std::vector<int64_t> values(static_cast<size_t>(*n));
  const auto copy = [&](auto* data) { std::copy(data, data + *n, values.begin()); };
  const auto type = gguf_get_arr_type(gguf_.get(), id);
  if (type == GGUF_TYPE_INT32) {
    copy(static_cast<const int32_t*>(gguf_get_arr_data(gguf_.get(), id)));
  } else if (type == GGUF_TYPE_UINT32) {
    copy(static_cast<const uint32_t*>(gguf_get_arr_data(gguf_.get(), id)));
  } else {
    wrong_array_type(key, "32-bit integers");
  }
  return values;
}

std::optional<std::vector<std::string>> GgufFile::find_string_array(const std::string& key) const {
  const auto n = find_array_size(key);
  if (!n) return std::nullopt;
  const int64_t id = find_key(key);
  if (gguf_get_arr_type(gguf_.get(), id) != GGUF_TYPE_STRING) {
    wrong_array_type(key, "strings");
  }
  std::vector<std::string> values;
  values.reserve(static_cast<size_t>(*n));
  for (int64_t i = 0; i < *n; ++i) {
    values.emplace_back(gguf_get_arr_str(gguf_.get(), id, static_cast<size_t>(i)));
  }
  return values;
}

std::string GgufFile::get_string(const std::string& key) const {
  const auto value = find_string(key);
  if (!value) wrong_type(key, "a string");
  return *value;
}

int64_t GgufFile::get_int(const std::string& key, int64_t min, int64_t max) const {
  const auto value = find_int(key, min, max);
  if (!value) wrong_type(key, "an integer");
  return *value;
}

double GgufFile::get_float(const std::string& key) const {
  const auto value = find_float(key);
  if (!value) wrong_type(key, "a float");
  return *value;
}

const TensorInfo* GgufFile::find_tensor(std::string_view name) const {
  const auto it = tensor_index_.find(std::string(name));
  return it == tensor_index_.end() ? nullptr : &tensors_[it->second];
}

uint64_t GgufFile::tensor_bytes() const {
  uint64_t total = 0;
  for (const TensorInfo& tensor : tensors_) total += tensor.n_bytes;
  return total;
}

const TensorInfo& GgufFile::require_tensor(const std::string& name,
                                           const std::vector<int64_t>& expected_ne) const {
  const std::string expected = trimmed_shape(expected_ne);
  const TensorInfo* tensor = find_tensor(name);
  if (tensor == nullptr) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected tensor {} {}, found none", path_, name,
                expected);
  }
  if (shape_to_string(tensor->ne) != expected) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected tensor {} to be {}, got {}", path_, name,
                expected, shape_to_string(tensor->ne));
  }
  return *tensor;
}

}  // namespace plateau::model

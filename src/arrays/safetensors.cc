#include "arrays/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/check.h"

namespace plateau::arrays {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr size_t kLengthBytes = 8;

struct ElementType {
  const char* name;
  DType dtype;
  int n_bytes;
};

constexpr ElementType kElementTypes[] = {
    {"F16", DType::kF16, 2},       {"BF16", DType::kBf16, 2},     {"F32", DType::kF32, 4},
    {"F64", DType::kF64, 8},       {"I32", DType::kI32, 4},       {"I64", DType::kI64, 8},
    {"BOOL", DType::kOther, 1},    {"U8", DType::kOther, 1},      {"I8", DType::kOther, 1},
    {"F8_E5M2", DType::kOther, 1}, {"F8_E4M3", DType::kOther, 1}, {"I16", DType::kOther, 2},
    {"U16", DType::kOther, 2},     {"U32", DType::kOther, 4},     {"U64", DType::kOther, 8},
};

[[noreturn]] void fail(const std::string& where, std::string_view expected) {
  throw_error(ErrorCode::kCorrupt, "[{}] expected {}", where, expected);
}

uint64_t header_length(std::span<const std::byte> file) {
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  }
  return length;
}

/// The JSON library keeps the last of two equal keys; which of two tensors was meant is not ours to
/// guess.
Json parse_header(const std::string& where, std::string_view text) {
  std::set<std::string> names;
  bool has_duplicate = false;
  const auto on_event = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth == 1 && event == Json::parse_event_t::key) {
      has_duplicate = !names.insert(parsed.get<std::string>()).second || has_duplicate;
    }
    return true;
  };
  Json header = Json::parse(text, on_event, /*allow_exceptions=*/false);
  if (!header.is_object()) fail(where, "a safetensors header in JSON, got another text");
  if (has_duplicate) fail(where, "tensor names that differ, got the same one twice");
  return header;
}

/// The non-negative integers of a JSON array.
std::vector<int64_t> counts(const std::string& where, const Json& tensor, const char* key) {
  const auto list = tensor.find(key);
  if (list == tensor.end() || !list->is_array()) {
    fail(where, fmt::format("a list of numbers as {}", key));
  }
  std::vector<int64_t> result;
  for (const Json& value : *list) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t{1} << 62) {
      fail(where, fmt::format("whole numbers from 0 to 2^62 as {}", key));
    }
    result.push_back(value.get<int64_t>());
  }
  return result;
}

const ElementType& find_type(const std::string& where, const Json& tensor) {
  const auto name = tensor.find("dtype");
  if (name == tensor.end() || !name->is_string()) fail(where, "a dtype");
  for (const ElementType& type : kElementTypes) {
    if (*name == type.name) return type;
  }
  fail(where, "a known dtype, got " + name->get<std::string>());
}

Array parse_tensor(const std::string& where, const std::string& name, const Json& tensor,
                   std::span<const std::byte> data) {
  if (!tensor.is_object()) fail(where, "an object with dtype, shape and data_offsets");
  const ElementType& type = find_type(where, tensor);
  Array array;
  array.where = where;
  array.name = name;
  array.shape = counts(where, tensor, "shape");
  array.dtype = type.dtype;
  array.dtype_name = type.name;
  const std::vector<int64_t> offsets = counts(where, tensor, "data_offsets");
  const auto n_data = static_cast<int64_t>(data.size());
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > n_data) {
    fail(where, fmt::format("data_offsets within the {} bytes of data, got {}", n_data,
                            shape_text(offsets)));
  }
  const int64_t n_bytes = offsets[1] - offsets[0];
  const std::optional<int64_t> n = count_elements(array.shape);
  if (!n || *n > n_bytes / type.n_bytes || *n * type.n_bytes != n_bytes) {
    fail(where, fmt::format("the data of a {} tensor of shape {}, got {} bytes", type.name,
                            shape_text(array.shape), n_bytes));
  }
  array.bytes = data.subspan(static_cast<size_t>(offsets[0]), static_cast<size_t>(n_bytes));
  return array;
}

}  // namespace

bool is_safetensors(std::span<const std::byte> file) {
  return file.size() > kLengthBytes && std::to_integer<char>(file[kLengthBytes]) == '{';
}

std::vector<Array> parse_safetensors(const std::string& where, std::span<const std::byte> file) {
  if (!is_safetensors(file)) fail(where, "a safetensors file, got other bytes");
  const uint64_t n_header = header_length(file);
  const uint64_t n_rest = file.size() - kLengthBytes;
  if (n_header > std::min(kMaxHeaderBytes, n_rest)) {
    fail(where, fmt::format("a safetensors header of at most {} bytes, got one of {}",
                            std::min(kMaxHeaderBytes, n_rest), n_header));
  }
  const auto text = file.subspan(kLengthBytes, static_cast<size_t>(n_header));
  const auto data = file.subspan(kLengthBytes + static_cast<size_t>(n_header));
  const Json header =
      parse_header(where, {reinterpret_cast<const char*>(text.data()), text.size()});

  std::vector<Array> tensors;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    tensors.push_back(parse_tensor(fmt::format("{}: {}", where, name), name, tensor, data));
  }
  // Empty tensors sort before the one that begins where they lie.
  const auto end_of = [](const Array& array) { return array.bytes.data() + array.bytes.size(); };
  std::sort(tensors.begin(), tensors.end(), [&](const Array& a, const Array& b) {
    return std::pair(a.bytes.data(), end_of(a)) < std::pair(b.bytes.data(), end_of(b));
  });
  const std::byte* end = data.data();
  for (const Array& array : tensors) {
    if (array.bytes.data() != end) {
      fail(array.where, "tensors that lie back to back, got an overlap or a hole");
    }
    end = end_of(array);
  }
  if (end != data.data() + data.size()) {
    fail(where, "tensors that fill the file, got bytes after the last one");
  }
  return tensors;
}

}  // namespace plateau::arrays

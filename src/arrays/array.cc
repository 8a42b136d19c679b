#include "arrays/array.h"

#include <bit>
#include <cstring>

#include "arrays/mapped_file.h"
#include "base/check.h"

namespace plateau::arrays {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are read as they lie");

float from_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t magnitude = bits & 0x7FFFU;
  if (magnitude < 0x0400U) {  // zero and subnormal: a multiple of 2^-24
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
  }
  const uint32_t exponent = magnitude >= 0x7C00U ? 0x38000000U + 0x38000000U : 0x38000000U;
  return std::bit_cast<float>(sign | ((magnitude << 13) + exponent));
}

float from_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

template <typename Stored, typename Out, typename Convert>
void convert(const std::byte* bytes, std::span<Out> out, Convert to_value) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes + i * sizeof(Stored), sizeof(Stored));
    out[i] = static_cast<Out>(to_value(stored));
  }
}

template <typename Out>
void read_as(const Array& array, int64_t first, std::span<Out> out) {
  PLATEAU_CHECK(first >= 0 && first + static_cast<int64_t>(out.size()) <= array.n_elements());
  const auto at = [&](size_t element_bytes) {
    return array.bytes.data() + static_cast<size_t>(first) * element_bytes;
  };
  const auto same = [](auto value) { return value; };
  switch (array.dtype) {
    case DType::kF16:
      return convert<uint16_t>(at(2), out, from_f16);
    case DType::kBf16:
      return convert<uint16_t>(at(2), out, from_bf16);
    case DType::kF32:
      return convert<float>(at(4), out, same);
    case DType::kF64:
      return convert<double>(at(8), out, same);
    case DType::kI32:
      return convert<int32_t>(at(4), out, same);
    case DType::kI64:
      return convert<int64_t>(at(8), out, same);
    case DType::kOther:
      break;
  }
  PLATEAU_CHECK(array.dtype != DType::kOther);
}

}  // namespace

const char* to_string(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return "f16";
    case DType::kBf16:
      return "bf16";
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kOther:
      break;
  }
  return "other";
}

int64_t Array::n_elements() const { return count_elements(shape).value_or(0); }

void Array::read(int64_t first, std::span<float> out) const { read_as(*this, first, out); }
void Array::read(int64_t first, std::span<double> out) const { read_as(*this, first, out); }

void Array::forget() const {
  if (file != nullptr) file->forget(bytes);
}

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::optional<int64_t> count_elements(std::span<const int64_t> shape) {
  constexpr int64_t kMost = int64_t{1} << 62;
  int64_t n = 1;
  bool is_empty = false;
  for (const int64_t dim : shape) {
    if (dim < 0) return std::nullopt;
    is_empty = is_empty || dim == 0;
  }
  if (is_empty) return 0;
  for (const int64_t dim : shape) {
    if (n > kMost / dim) return std::nullopt;
    n *= dim;
  }
  return n;
}

}  // namespace plateau::arrays

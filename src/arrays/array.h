// A tensor in a file, as a view: shape, element type, bytes that somebody else owns.
// Tested by tests/arrays/array_file_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plateau::arrays {

class MappedFile;

/// Little endian, all of them. kOther: well-formed, but not read here; dtype_name says what it is.
enum class DType { kF16, kBf16, kF32, kF64, kI32, kI64, kOther };

/// Short lower-case name, such as "f32".
const char* to_string(DType dtype);

struct Array {
  std::string where;           // for messages: the file, and the tensor in it
  std::string name;            // the tensor's name in a safetensors file; empty in a .npy file
  std::vector<int64_t> shape;  // C order: the last index is the fastest
  DType dtype = DType::kF32;
  std::string dtype_name;            // as the file spells it
  std::span<const std::byte> bytes;  // not aligned; n_elements() of them, unless dtype is kOther

  const MappedFile* file = nullptr;  // that the bytes lie in; null where they lie elsewhere

  int64_t n_elements() const;
  /// Elements [first, first + out.size()) in row-major order. REQUIRES: within the array, not
  /// kOther.
  void read(int64_t first, std::span<float> out) const;
  void read(int64_t first, std::span<double> out) const;
  /// Gives the memory of a mapped file's pages back; the elements can still be read.
  void forget() const;
};

/// "[2, 5, 64]".
std::string shape_text(std::span<const int64_t> shape);

/// Number of elements; nullopt for a negative dimension or when it exceeds 2^62.
std::optional<int64_t> count_elements(std::span<const int64_t> shape);

}  // namespace plateau::arrays

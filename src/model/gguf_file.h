// Metadata of one GGUF file: typed getters that name the file, the key, what was expected and what
// was found. No tensor data is read.
//
// Immutable after open(); safe to share between threads.
// Tested by tests/model/gguf_file_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ggml-cpp.h"

namespace plateau::model {

struct TensorInfo {
  std::string name;
  std::array<int64_t, 4> ne = {1, 1, 1, 1};  // ggml order
  ggml_type type = GGML_TYPE_F32;
  uint64_t file_offset = 0;  // from the start of the file
  uint64_t n_bytes = 0;
};

/// "[896, 4864]": the dimensions without trailing ones.
std::string shape_to_string(const std::array<int64_t, 4>& ne);

class GgufFile {
 public:
  /// Errors: kNotFound, kCorrupt (not GGUF, or shorter than its tensors need).
  static GgufFile open(const std::string& path);

  const std::string& path() const { return path_; }
  bool has(const std::string& key) const;
  bool is_array(const std::string& key) const;

  // Required keys. Errors: kCorrupt when absent or of another type.
  std::string get_string(const std::string& key) const;
  /// Any integer type; the value must lie in [min, max].
  int64_t get_int(const std::string& key, int64_t min, int64_t max) const;
  double get_float(const std::string& key) const;

  // Optional keys: absent is nullopt, a wrong type is kCorrupt.
  std::optional<std::string> find_string(const std::string& key) const;
  std::optional<int64_t> find_int(const std::string& key, int64_t min, int64_t max) const;
  std::optional<double> find_float(const std::string& key) const;
  std::optional<bool> find_bool(const std::string& key) const;
  std::optional<std::vector<float>> find_float_array(const std::string& key) const;
  std::optional<std::vector<int64_t>> find_int_array(const std::string& key) const;
  std::optional<std::vector<std::string>> find_string_array(const std::string& key) const;
  /// Throws unless the key is absent or a scalar of exactly this type, for files that are handed on
  /// to a reader that asserts it. Errors: kCorrupt.
  void require_type(const std::string& key, gguf_type type) const;
  /// Number of elements of an array key.
  std::optional<int64_t> find_array_size(const std::string& key) const;

  const TensorInfo* find_tensor(std::string_view name) const;
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  uint64_t tensor_bytes() const;

  /// Throws unless the tensor exists with these dimensions (trailing ones omitted).
  /// Errors: kCorrupt, naming file, tensor, expected and found shape.
  const TensorInfo& require_tensor(const std::string& name,
                                   const std::vector<int64_t>& expected_ne) const;

 private:
  GgufFile(std::string path, gguf_context_ptr gguf);
  int64_t find_key(const std::string& key) const;
  [[noreturn]] void wrong_type(const std::string& key, std::string_view expected) const;
  [[noreturn]] void wrong_array_type(const std::string& key, std::string_view expected) const;

  std::string path_;
  gguf_context_ptr gguf_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, size_t> tensor_index_;
};

}  // namespace plateau::model

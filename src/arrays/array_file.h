// A .npy or .safetensors file, told apart by content.
// Tested by tests/arrays/array_file_test.cc.
#pragma once

#include <string>
#include <vector>

#include "arrays/array.h"
#include "arrays/mapped_file.h"

namespace plateau::arrays {

class ArrayFile {
 public:
  /// Errors: those of MappedFile, parse_npy and parse_safetensors; kUnsupported for another format.
  explicit ArrayFile(const std::string& path);
  ArrayFile(const ArrayFile&) = delete;
  ArrayFile& operator=(const ArrayFile&) = delete;

  const std::string& path() const { return path_; }
  /// Views; valid for the life of this object.
  const std::vector<Array>& arrays() const { return arrays_; }
  /// Null where there is none.
  const Array* find_or_null(const std::string& name) const;
  /// Errors: kInvalidArgument where the file holds none or several.
  const Array& only() const;

 private:
  std::string path_;
  MappedFile file_;
  std::vector<Array> arrays_;
};

}  // namespace plateau::arrays

#include "arrays/array_file.h"

#include "arrays/npy.h"
#include "arrays/safetensors.h"
#include "base/check.h"

namespace plateau::arrays {

ArrayFile::ArrayFile(const std::string& path) : path_(path), file_(path) {
  if (is_npy(file_.bytes())) {
    arrays_.push_back(parse_npy(path, file_.bytes()));
  } else if (is_safetensors(file_.bytes())) {
    arrays_ = parse_safetensors(path, file_.bytes());
  } else {
    throw_error(ErrorCode::kUnsupported, "[{}] expected a .npy or .safetensors file, got {}", path,
                file_.bytes().empty() ? "an empty one" : "another format");
  }
  for (Array& array : arrays_) array.file = &file_;
}

const Array* ArrayFile::find_or_null(const std::string& name) const {
  for (const Array& array : arrays_) {
    if (array.name == name) return &array;
  }
  return nullptr;
}

const Array& ArrayFile::only() const {
  if (arrays_.size() == 1) return arrays_.front();
  std::vector<std::string> names;
  for (const Array& array : arrays_) names.push_back(array.name);
  throw_error(ErrorCode::kInvalidArgument,
              "[{}] expected one tensor, got {} ({}); try --in for a file with several", path_,
              names.size(), fmt::join(names, ", "));
}

}  // namespace plateau::arrays

// A whole file, read-only, mapped: its pages belong to the page cache, so that arrays larger than
// the memory bound can be walked through.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace plateau::arrays {

class MappedFile {
 public:
  /// Errors: kNotFound (missing, unreadable), kUnsupported (not a regular file).
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  /// Valid for the life of this object. REQUIRES: nobody shortens the file meanwhile.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace plateau::arrays

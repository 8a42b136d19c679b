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
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// Valid for the life of this object. REQUIRES: nobody shortens the file meanwhile.
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Stops counting the pages within `part` as memory of this process; reading them again is only
  /// slower. REQUIRES: a part of bytes().
  void forget(std::span<const std::byte> part) const;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace plateau::arrays

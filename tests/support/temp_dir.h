// A directory of its own for one test, removed with all its content when the object goes.
#pragma once

#include <filesystem>
#include <string>

namespace plateau::test {

class TempDir {
 public:
  /// Creates a new, empty directory below the system's temporary directory.
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Full name of a file in the directory; creates nothing.
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace plateau::test

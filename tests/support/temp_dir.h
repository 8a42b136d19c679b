// A directory of its own for one test, removed with all its content when the object goes.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace plateau::test {

class TempDir {
 public:
  /// Creates a new, empty directory below the system's temporary directory.
  TempDir() {
    path_ = (std::filesystem::temp_directory_path() / "plateau-test-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp " + path_);
  }
  ~TempDir() {
    std::error_code ignored;  // a destructor has nobody to tell
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  /// Full name of a file in the directory; creates nothing.
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file and returns its full name.
  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream(file(name), std::ios::binary) << bytes;
    return file(name);
  }

 private:
  std::string path_;
};

}  // namespace plateau::test

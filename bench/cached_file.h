#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace plateau {

/// A file of the system's temporary directory that is made once and kept for the next call, so that
/// runs that are compared come from one file.
inline std::string cached_file(const std::string& name,
                               const std::function<void(const std::string&)>& write) {
  const auto path = std::filesystem::temp_directory_path() / name;
  if (!std::filesystem::exists(path)) {
    write(path.string() + ".part");
    std::filesystem::rename(path.string() + ".part", path);
  }
  return path.string();
}

}  // namespace plateau

// A file of JSON Lines that grows by one record at a time, so that an interruption keeps what is
// finished. Tested by tests/cli/bench_test.cc.
#pragma once

#include <string>

namespace plateau::cli {

class JsonlFile {
 public:
  /// Appends to the file, or makes it; "-" is standard output.
  /// Errors: kNotFound when it cannot be opened for writing.
  explicit JsonlFile(const std::string& path);
  ~JsonlFile();
  JsonlFile(const JsonlFile&) = delete;
  JsonlFile& operator=(const JsonlFile&) = delete;

  /// Writes one line and flushes it. Errors: kUnavailable (disk full): the lines before it stay,
  /// and no part of this one does.
  void add(const std::string& line);

 private:
  std::string path_;
  int fd_ = -1;
  bool starts_amid_line_ = false;
};

}  // namespace plateau::cli

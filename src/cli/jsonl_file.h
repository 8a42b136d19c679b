// A file of JSON Lines that grows by one record at a time, so that an interruption keeps what is
// finished. Tested by tests/cli/bench_test.cc.
#pragma once

#include <string>
#include <vector>

namespace plateau::cli {

class JsonlFile {
 public:
  /// Appends to the file, or makes it; "-" is standard output. What is there must begin with a
  /// record whose "type" is one of `types`, or be torn off within its first.
  /// Errors: kUnavailable when it cannot be opened for writing; kInvalidArgument when it is another
  /// file, which is left as it is.
  JsonlFile(const std::string& path, const std::vector<std::string>& types);
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

#include "cli/jsonl_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace plateau::cli {
namespace {

/// False, with errno set, when not all could be written.
bool write_all(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

JsonlFile::JsonlFile(const std::string& path) : path_(path) {
  if (path == "-") {
    path_ = "standard output";
    fd_ = STDOUT_FILENO;
    return;
  }
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    throw_error(ErrorCode::kNotFound, "[{}] cannot be opened for writing: {}", path,
                std::strerror(errno));
  }
  char last = '\n';
  const off_t size = lseek(fd_, 0, SEEK_END);
  if (size > 0 && pread(fd_, &last, 1, size - 1) == 1) starts_amid_line_ = last != '\n';
}

JsonlFile::~JsonlFile() {
  if (fd_ > STDERR_FILENO) close(fd_);
}

void JsonlFile::add(const std::string& line) {
  struct stat before = {};
  const bool is_file = fstat(fd_, &before) == 0 && S_ISREG(before.st_mode);
  if (!write_all(fd_, (starts_amid_line_ ? "\n" : "") + line + "\n")) {
    const int reason = errno;
    const bool cut = is_file && ftruncate(fd_, before.st_size) == 0;
    throw_error(ErrorCode::kUnavailable, "[{}] cannot be written: {}{}", path_,
                std::strerror(reason), cut ? "; the finished results are kept" : "");
  }
  starts_amid_line_ = false;
}

}  // namespace plateau::cli

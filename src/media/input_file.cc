// Tested by image_test.cc.
#include "media/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace plateau::media {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

InputFile::InputFile(std::string path, std::string_view where) : path_(std::move(path)) {
  if (path_.empty() || path_.find('\0') != std::string::npos) {
    throw_error(ErrorCode::kNotFound, "[{}] expected a file name, got {}", where,
                path_.empty() ? "an empty one" : "one with a zero byte in it");
  }
  // O_NONBLOCK: opening a named pipe must not wait for a writer. It has no effect on regular files.
  fd_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (fd_.get() < 0 || ::fstat(fd_.get(), &status) != 0) {
    throw_error(ErrorCode::kNotFound, "[{}] expected a readable file, got '{}' ({})", where, path_,
                std::generic_category().message(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    throw_error(ErrorCode::kUnsupported, "[{}] expected a regular file, got {} at '{}'", where,
                kind_of(status.st_mode), path_);
  }
  size_ = status.st_size;
  if (size_ == 0) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected content, got the empty file '{}'", where,
                path_);
  }
}

std::vector<uint8_t> InputFile::read_at(int64_t offset, size_t n_bytes) const {
  if (offset < 0) offset = std::max<int64_t>(0, size_ + offset);
  std::vector<uint8_t> bytes(n_bytes);
  size_t n_read = 0;
  while (n_read < n_bytes) {
    const ssize_t n = ::pread(fd_.get(), bytes.data() + n_read, n_bytes - n_read,
                              offset + static_cast<int64_t>(n_read));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    n_read += static_cast<size_t>(n);
  }
  bytes.resize(n_read);
  return bytes;
}

}  // namespace plateau::media

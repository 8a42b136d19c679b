// Tested by orientation_test.cc and limits_test.cc.
#include "media/spool.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/check.h"

namespace plateau::media {
namespace {

constexpr int kOwnerOnly = 0600;

// Some file systems lack O_TMPFILE; a named file that is unlinked at once is the same to us.
int open_nameless(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, kOwnerOnly);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
  std::string name = directory + "/plateau-XXXXXX";
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

}  // namespace

Spool::Spool(const std::string& directory) : directory_(directory), fd_(open_nameless(directory)) {
  if (fd_.get() < 0) {
    throw_error(ErrorCode::kUnavailable,
                "[image] expected a directory for temporary files, got '{}' ({}); try another one",
                directory, std::generic_category().message(errno));
  }
}

void Spool::write_at(int64_t offset, const uint8_t* bytes, size_t n_bytes) {
  while (n_bytes > 0) {
    const ssize_t n = ::pwrite(fd_.get(), bytes, n_bytes, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      throw_error(ErrorCode::kResourceExhausted,
                  "[image] expected room for a temporary file in '{}', got an error ({}); try "
                  "another directory",
                  directory_, std::generic_category().message(errno));
    }
    bytes += n;
    offset += n;
    n_bytes -= static_cast<size_t>(n);
  }
}

void Spool::read_at(int64_t offset, uint8_t* bytes, size_t n_bytes) const {
  while (n_bytes > 0) {
    const ssize_t n = ::pread(fd_.get(), bytes, n_bytes, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      throw_error(ErrorCode::kUnavailable,
                  "[image] expected to read the temporary file in '{}' back, got an error ({})",
                  directory_, std::generic_category().message(n == 0 ? EIO : errno));
    }
    bytes += n;
    offset += n;
    n_bytes -= static_cast<size_t>(n);
  }
}

}  // namespace plateau::media

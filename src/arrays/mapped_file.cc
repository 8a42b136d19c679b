// Tested by tests/arrays/array_file_test.cc.
#include "arrays/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace plateau::arrays {
namespace {

class Descriptor {
 public:
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
  explicit Descriptor(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const Descriptor fd(path);
  struct stat status = {};
  if (fd.get() < 0 || fstat(fd.get(), &status) != 0) {
    throw_error(ErrorCode::kNotFound, "[{}] cannot be opened for reading: {}", path,
                std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    throw_error(ErrorCode::kUnsupported, "[{}] expected a regular file", path);
  }
  if (status.st_size == 0) return;  // mmap refuses it; the parsers say what is missing
  const auto n_bytes = static_cast<size_t>(status.st_size);
  void* address = mmap(nullptr, n_bytes, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) {
    throw_error(ErrorCode::kNotFound, "[{}] cannot be read: {}", path, std::strerror(errno));
  }
  bytes_ = {static_cast<const std::byte*>(address), n_bytes};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace plateau::arrays

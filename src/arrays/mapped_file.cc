// Tested by tests/arrays/array_file_test.cc.
#include "arrays/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

void MappedFile::forget(std::span<const std::byte> part) const {
  if (part.empty()) return;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto first = static_cast<size_t>(part.data() - bytes_.data()) / page * page;
  const size_t end = static_cast<size_t>(part.data() - bytes_.data()) + part.size();
  // The pages are clean and private: they come back from the file. Failure costs memory only.
  madvise(const_cast<std::byte*>(bytes_.data()) + first, end - first, MADV_DONTNEED);
}

}  // namespace plateau::arrays

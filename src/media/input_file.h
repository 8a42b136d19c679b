// A local file opened for reading, known to be a regular file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plateau::media {

/// Owns a file descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;

  int get() const { return fd_; }

 private:
  int fd_;
};

/// Opened once and checked on the descriptor, so that the file cannot be exchanged between the
/// check and the decoding. The name is only a name: no option syntax, no "-" for standard input.
class InputFile {
 public:
  /// Errors: kNotFound (missing, unreadable), kUnsupported (not a regular file), kCorrupt (empty).
  /// `where` heads the messages.
  explicit InputFile(std::string path, std::string_view where = "image");

  int64_t size() const { return size_; }
  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

  /// Up to `n_bytes` from `offset`; from the end where offset is negative. Shorter at the end of
  /// the file. Does not move the file position.
  std::vector<uint8_t> read_at(int64_t offset, size_t n_bytes) const;

 private:
  std::string path_;
  FileDescriptor fd_;
  int64_t size_ = 0;
};

}  // namespace plateau::media

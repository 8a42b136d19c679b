#include "cli/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/check.h"

namespace plateau::cli {
namespace {

constexpr size_t kMaxBytes = size_t{64} << 20;

struct FileCloser {
  void operator()(std::FILE* file) const {
    if (file != stdin && file != stdout) std::fclose(file);
  }
};
using FilePtr = std::unique_ptr<std::FILE, FileCloser>;

/// Opening a named pipe would wait for a writer that may never come. A pipe without a name, such as
/// /dev/stdin or what a shell's <(...) stands for, has one already.
FilePtr open_text_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    throw_error(ErrorCode::kNotFound, "[{}] cannot be opened for reading: {}", path,
                std::strerror(errno));
  }
  FilePtr file(::fdopen(fd, "rb"));
  struct stat status = {};
  if (!file || ::fstat(fd, &status) != 0) {
    throw_error(ErrorCode::kNotFound, "[{}] cannot be opened for reading", path);
  }
  std::error_code ignored;
  const std::string target =
      std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), ignored).string();
  if (S_ISFIFO(status.st_mode) && !target.starts_with("pipe:")) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected a file, got a named pipe; try - for standard input", path);
  }
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return file;
}

}  // namespace

std::string read_text_file(const std::string& path) {
  const FilePtr file = path == "-" ? FilePtr(stdin) : open_text_file(path);
  std::string text;
  std::array<char, 1 << 16> buffer = {};
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    text.append(buffer.data(), n);
    if (text.size() > kMaxBytes) {
      throw_error(ErrorCode::kInvalidArgument, "[{}] expected at most 64 MiB of text", path);
    }
  }
  if (std::ferror(file.get()) != 0) {
    throw_error(ErrorCode::kNotFound, "[{}] cannot be read", path);
  }
  return text;
}

void write_text_file(const std::string& path, const std::string& text) {
  FilePtr file(path == "-" ? stdout : std::fopen(path.c_str(), "wb"));
  const bool written = file &&
                       std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
                       std::fflush(file.get()) == 0;
  if (!written) {
    throw_error(ErrorCode::kUnavailable, "[{}] cannot be written: {}", path, std::strerror(errno));
  }
}

}  // namespace plateau::cli

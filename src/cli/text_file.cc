#include "cli/text_file.h"

#include <array>
#include <cstdio>
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

}  // namespace

std::string read_text_file(const std::string& path) {
  const FilePtr file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file) throw_error(ErrorCode::kNotFound, "[{}] cannot be opened for reading", path);
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
  if (!written) throw_error(ErrorCode::kUnavailable, "[{}] cannot be written", path);
}

}  // namespace plateau::cli

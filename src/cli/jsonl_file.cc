#include "cli/jsonl_file.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"

namespace plateau::cli {
namespace {

constexpr size_t kMaxFirstLine = size_t{1} << 20;

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

/// At most kMaxFirstLine bytes from the file's beginning.
std::string beginning_of(int fd) {
  std::string text(kMaxFirstLine, '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  text.resize(done);
  return text;
}

bool begins_with_record(const std::string& text, const std::vector<std::string>& types) {
  const size_t end = text.find('\n');
  if (end == std::string::npos) {
    constexpr std::string_view kBeginning = R"({"type":")";
    return text.substr(0, kBeginning.size()) == kBeginning.substr(0, text.size());
  }
  const auto json = nlohmann::json::parse(text.substr(0, end), /*cb=*/nullptr,
                                          /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("type")) return false;
  return std::find(types.begin(), types.end(), json.at("type")) != types.end();
}

}  // namespace

JsonlFile::JsonlFile(const std::string& path, const std::vector<std::string>& types) : path_(path) {
  if (path == "-") {
    path_ = "standard output";
    fd_ = STDOUT_FILENO;
    return;
  }
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    throw_error(ErrorCode::kUnavailable, "[{}] cannot be opened for writing: {}", path,
                std::strerror(errno));
  }
  struct stat status = {};
  const bool is_file = fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
  if (is_file && !begins_with_record(beginning_of(fd_), types)) {
    close(fd_);
    throw_error(ErrorCode::kInvalidArgument,
                "[{}] expected an empty file or one that begins with a record of type {}, got "
                "another file; try another name",
                path, fmt::join(types, " or "));
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

#include "eval/run_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/plural.h"
#include "eval/readers/json_record.h"

namespace plateau::eval {
namespace {

using Json = nlohmann::ordered_json;

std::string read_all(int fd, const std::string& path) {
  std::string text;
  std::array<char, 1 << 16> buffer = {};
  while (true) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_error(ErrorCode::kNotFound, "[{}] cannot be read", path);
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(n));
  }
}

[[noreturn]] void refuse_other_file(const std::string& path) {
  throw_error(ErrorCode::kInvalidArgument,
              "[{}] expected a results file of plateau eval, got another file; try another --out",
              path);
}

/// A last line without its line feed. Only what we began to write ourselves may be thrown away: the
/// beginning of the header on the first line, that of any record behind it.
void check_torn(const std::string& torn, const std::string& header, const std::string& path,
                int line) {
  if (line == 1) {
    if (!header.starts_with(torn)) refuse_other_file(path);
    return;
  }
  constexpr std::string_view kBeginning = R"({"type":")";
  if (torn.substr(0, kBeginning.size()) != kBeginning.substr(0, torn.size())) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected a result, got a line that is no JSON",
                fmt::format("{}:{}", path, line));
  }
}

/// The first field in which two identities differ.
std::string difference(const Json& ours, const Json& theirs, const std::string& name) {
  if (ours.is_object() && theirs.is_object()) {
    for (const auto& [key, value] : ours.items()) {
      const Json& other = theirs.contains(key) ? theirs.at(key) : Json();
      if (value != other) return difference(value, other, name.empty() ? key : name + "." + key);
    }
    for (const auto& [key, value] : theirs.items()) {
      if (!ours.contains(key)) return key + " is not known any more";
    }
  }
  return fmt::format("{} is {} there and {} now", name, theirs.dump(), ours.dump());
}

void check_identity(const std::string& path, const Json& ours, const Json& theirs) {
  if (!theirs.contains("identity")) refuse_other_file(path);
  if (theirs.at("identity") == ours.at("identity")) return;
  throw_error(ErrorCode::kInvalidArgument,
              "[{}] holds results of another run: {}; try another --out", path,
              difference(ours.at("identity"), theirs.at("identity"), ""));
}

}  // namespace

RunFile::RunFile(const std::string& path, const Json& header, const Check& check) : path_(path) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    throw_error(ErrorCode::kUnavailable, "[{}] cannot be opened for writing: {}", path,
                std::strerror(errno));
  }
  try {
    struct stat status = {};
    is_regular_ = ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
    if (is_regular_ && ::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      throw_error(ErrorCode::kInvalidArgument,
                  "[{}] is being written by another process; try another --out", path);
    }
    if (is_regular_) read_existing(read_all(fd_, path), header, check);
    if (size_ == 0) append(to_line(header));
    n_lines_ = static_cast<int64_t>(found_.size());
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

RunFile::~RunFile() { ::close(fd_); }

void RunFile::read_existing(const std::string& text, const Json& header, const Check& check) {
  std::map<std::pair<std::string, std::string>, size_t> index;  // by id and setting
  size_t begin = 0;
  size_t kept = 0;  // up to the last line that is no summary
  for (int line = 1; begin < text.size(); ++line) {
    const size_t end = text.find('\n', begin);
    const std::string place = fmt::format("{}:{}", path_, line);
    if (end == std::string::npos) {
      check_torn(text.substr(begin), to_line(header), path_, line);
      was_repaired_ = true;
      break;
    }
    const Json json = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                  text.begin() + static_cast<std::ptrdiff_t>(end),
                                  /*cb=*/nullptr, /*allow_exceptions=*/false);
    begin = end + 1;
    const std::string type =
        json.is_object() ? json.value("type", Json()).dump() : std::string("nothing");
    if (line == 1) {
      if (type != "\"header\"") refuse_other_file(path_);
      check_identity(path_, header, json);
    } else if (type == "\"summary\"" || type == "\"correlation\"") {
      continue;  // results may follow: files that were put together, or written to by hand
    } else {
      if (json.is_discarded()) {
        throw_error(ErrorCode::kCorrupt, "[{}] expected a result, got a line that is no JSON",
                    place);
      }
      ResultRecord record = read_result(JsonRecord(nlohmann::json(json), place));
      const std::string complaint = check ? check(record) : "";
      if (!complaint.empty()) throw_error(ErrorCode::kCorrupt, "[{}] {}", place, complaint);
      const auto [at, is_new] =
          index.emplace(std::pair(record.id, record.setting.name()), found_.size());
      if (is_new) {
        found_.push_back(std::move(record));
      } else {
        found_[at->second] = std::move(record);
      }
    }
    kept = begin;
  }
  size_ = static_cast<int64_t>(kept);
  if (::ftruncate(fd_, size_) != 0 || ::lseek(fd_, size_, SEEK_SET) != size_) {
    throw_error(ErrorCode::kUnavailable, "[{}] cannot be written: {}", path_, std::strerror(errno));
  }
}

void RunFile::append(const std::string& line) {
  size_t n_written = 0;
  while (n_written < line.size()) {
    const ssize_t n = ::write(fd_, line.data() + n_written, line.size() - n_written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int reason = errno;
      if (is_regular_ && ::ftruncate(fd_, size_) == 0) ::lseek(fd_, size_, SEEK_SET);
      throw_error(ErrorCode::kUnavailable,
                  "[{}] cannot be written: {}; {} kept, the same command goes on from there", path_,
                  std::strerror(reason),
                  counted(n_lines_, "result") + (n_lines_ == 1 ? " is" : " are"));
    }
    n_written += static_cast<size_t>(n);
  }
  size_ += static_cast<int64_t>(line.size());
  ++n_lines_;
}

}  // namespace plateau::eval

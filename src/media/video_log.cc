// Tested by video_hostile_test.cc.
#include "media/video_log.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <mutex>

#include "media/video_handle.h"

namespace plateau::media {
namespace {

constexpr size_t kMaxReason = 200;

struct ThreadLog {
  int depth = 0;
  int64_t n_errors = 0;
  std::string first_error;
};

ThreadLog& thread_log() {
  thread_local ThreadLog log;
  return log;
}

void on_log(void* /*object*/, int level, const char* format, va_list arguments) {
  ThreadLog& log = thread_log();
  if (log.depth == 0 || level > AV_LOG_ERROR || log.n_errors++ > 0) return;
  std::array<char, 2 * kMaxReason> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  log.first_error = text.data();
}

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

std::string without_addresses(std::string text) {
  for (size_t at = text.find("0x"); at != std::string::npos; at = text.find("0x", at + 2)) {
    size_t end = at + 2;
    while (end < text.size() && is_hex(text[end])) ++end;
    constexpr size_t kShortestAddress = 2 + 8;
    if (end - at >= kShortestAddress) text.replace(at, end - at, "0x");
  }
  return text;
}

std::string one_line(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = ' ';
  }
  const size_t end = text.find_last_not_of(" .");
  text.resize(std::min(end == std::string::npos ? 0 : end + 1, kMaxReason));
  return without_addresses(text);
}

}  // namespace

VideoLog::VideoLog() {
  static std::once_flag once;
  std::call_once(once, [] {
    av_log_set_callback(on_log);
    av_max_alloc(kMaxVideoAllocation);
  });
  ThreadLog& log = thread_log();
  if (log.depth++ > 0) return;
  log.n_errors = 0;
  log.first_error.clear();
}

VideoLog::~VideoLog() { --thread_log().depth; }

int64_t VideoLog::n_errors() const { return thread_log().n_errors; }

std::string VideoLog::reason(int code) const {
  const std::string text = one_line(thread_log().first_error);
  if (!text.empty()) return text;
  std::array<char, AV_ERROR_MAX_STRING_SIZE> meaning{};
  av_strerror(code, meaning.data(), meaning.size());
  return one_line(meaning.data());
}

}  // namespace plateau::media

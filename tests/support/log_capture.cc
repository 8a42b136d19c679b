#include "support/log_capture.h"

#include <cstddef>
#include <deque>
#include <mutex>

#include "llama.h"
#include "mtmd.h"

namespace plateau::test {
namespace {

constexpr size_t kMaxLines = 8;

// llama.cpp's log callbacks are process-wide, so what they write to is, too.
std::mutex mutex;
std::deque<std::string>& lines() {
  static std::deque<std::string> kept;
  return kept;
}

void keep(ggml_log_level level, const char* text, void*) {
  const std::lock_guard lock(mutex);
  if (level != GGML_LOG_LEVEL_ERROR && level != GGML_LOG_LEVEL_WARN) return;
  lines().emplace_back(text);
  if (lines().size() > kMaxLines) lines().pop_front();
}

}  // namespace

void capture_llama_logs() {
  llama_log_set(keep, nullptr);  // sets ggml's, too
  mtmd_log_set(keep, nullptr);
  const std::lock_guard lock(mutex);
  lines().clear();
}

std::string captured_llama_log() {
  const std::lock_guard lock(mutex);
  std::string text;
  for (const std::string& line : lines()) text += line;
  return text;
}

}  // namespace plateau::test

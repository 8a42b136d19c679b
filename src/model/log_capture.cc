#include "model/log_capture.h"

#include <mutex>

#include "llama.h"

namespace plateau::model {
namespace {

struct ThreadLog {
  int depth = 0;
  std::string first_error;  // the lines after it only say who gave up because of it
  bool in_error = false;    // a CONT line continues the level of the line before
};

ThreadLog& thread_log() {
  thread_local ThreadLog log;
  return log;
}

void on_log(ggml_log_level level, const char* text, void* /*user_data*/) {
  ThreadLog& log = thread_log();
  if (log.depth == 0) return;
  if (level == GGML_LOG_LEVEL_CONT) {
    if (log.in_error) log.first_error += text;
    return;
  }
  log.in_error = level == GGML_LOG_LEVEL_ERROR && log.first_error.empty();
  if (log.in_error) log.first_error = text;
}

}  // namespace

void silence_library_logs() {
  static std::once_flag once;
  std::call_once(once, [] { llama_log_set(on_log, nullptr); });
}

LogCapture::LogCapture() {
  silence_library_logs();
  ThreadLog& log = thread_log();
  if (log.depth++ == 0) log.first_error.clear();
}

LogCapture::~LogCapture() { --thread_log().depth; }

std::string LogCapture::first_error(const std::string& otherwise) const {
  std::string text = thread_log().first_error;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.empty() ? otherwise : text;
}

}  // namespace plateau::model

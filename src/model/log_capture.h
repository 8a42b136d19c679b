// ggml and llama.cpp give the reason of a failure to their log only. LogCapture keeps the first
// error line of its thread, so that it can become the text of an Error; nothing is printed.
#pragma once

#include <string>

namespace plateau::model {

class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  /// The first error line since construction, or `otherwise`.
  std::string first_error(const std::string& otherwise) const;
};

/// Routes the libraries' log away from stderr, once per process.
void silence_library_logs();

}  // namespace plateau::model

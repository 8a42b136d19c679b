// libvips' process-wide state: initialisation, the error buffer, the log.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

namespace plateau::media {

/// Hold one while calling libvips. Its error buffer is one per process, so calls that may fail are
/// serialised: otherwise the reason of one reader's failure could be reported by another's.
/// The first one initialises the library (once, thread-safe). Errors: kUnavailable.
class VipsSession {
 public:
  VipsSession();
  ~VipsSession();
  VipsSession(const VipsSession&) = delete;
  VipsSession& operator=(const VipsSession&) = delete;

  /// What the library has said since the session began, in one line; empty if nothing.
  std::string message() const;

 private:
  std::lock_guard<std::mutex> lock_;
};

/// The most memory that the library has tracked in this process so far.
int64_t peak_library_bytes();

}  // namespace plateau::media

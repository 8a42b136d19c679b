// FFmpeg's process-wide state: what it prints, and how much it may allocate at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace plateau::media {

/// FFmpeg gives the reason of a failure to its log only. Hold one while calling it: it keeps the
/// first error line of its thread, so that it can become the text of an Error; nothing is printed.
/// May be nested; the outermost one owns the line.
class VideoLog {
 public:
  VideoLog();
  ~VideoLog();
  VideoLog(const VideoLog&) = delete;
  VideoLog& operator=(const VideoLog&) = delete;

  /// The first error line since the outermost construction, or what `code` means: one line, without
  /// addresses.
  std::string reason(int code) const;

  /// Error lines of this thread since the outermost construction.
  int64_t n_errors() const;
};

/// No single allocation of FFmpeg is larger (a frame of 36 megapixels of 8 bytes fits): a header
/// that claims a billion frames cannot take the machine's memory.
inline constexpr size_t kMaxVideoAllocation = size_t{320} << 20;

}  // namespace plateau::media

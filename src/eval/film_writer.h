// Writes a film frame by frame; nothing but one frame is in memory, and some 100 bytes for each
// frame that the container's index needs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "eval/canvas.h"

namespace plateau::eval {

/// Sides of a film's frames: what the encoder takes.
inline constexpr int64_t kMinFrameSide = 16;
inline constexpr int64_t kMaxFrameSide = 8190;

/// MPEG-4 part 2 at a fixed, high quality, in 4:2:0 with BT.601's matrix, so that a frame shows
/// what was painted at every moment; a key frame every ten. The bytes are as fixed as the installed
/// FFmpeg.
class FilmWriter {
 public:
  /// The path ends in .mp4, .mkv or .avi. `fps` frames a second.
  /// Errors: kInvalidArgument (extension, a side outside the bounds above, fps below 1), kNotFound
  /// (folder), kUnavailable (cannot be written, or FFmpeg has no such encoder).
  FilmWriter(const std::string& path, int64_t width, int64_t height, int fps);
  /// Removes a film that was not finished.
  ~FilmWriter();
  FilmWriter(const FilmWriter&) = delete;
  FilmWriter& operator=(const FilmWriter&) = delete;

  /// The next frame, [height, width] pixels. Errors: kUnavailable.
  void add(const RgbView& frame);
  /// REQUIRES: at least one frame. Errors: kUnavailable.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace plateau::eval

// A photograph as backdrop: scaled to cover the picture, centred, read in bands.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "eval/canvas.h"

namespace plateau::eval {

/// Holds the photograph at its own size; never the scaled one. Not thread-safe.
class Photo {
 public:
  /// Errors: kNotFound (no such file), kUnsupported (not a picture that libvips reads).
  Photo(const std::string& path, int64_t width, int64_t height);
  ~Photo();
  Photo(const Photo&) = delete;
  Photo& operator=(const Photo&) = delete;

  /// Fills the band with the picture rows from `top`. Errors: kCorrupt (damaged pixel data).
  void read(int64_t top, RgbView band);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace plateau::eval

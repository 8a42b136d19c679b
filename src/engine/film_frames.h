// The frames of a film at the size that the encoder wants, one after the other, from a film or from
// pictures that stand for one. Tested by tests/engine/film_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/film_plan.h"
#include "media/image.h"
#include "media/video.h"

namespace plateau::engine {

class FilmFrames {
 public:
  /// `film` must outlive the object. Opens a film. Errors: as media::VideoReader.
  FilmFrames(const std::string& path, const FilmPlan& film, int width, int height,
             const media::ImageLimits& limits, std::function<bool()> should_cancel);

  /// REQUIRES: not called more often than there are frames. Errors: as media::VideoReader::next()
  /// and media::BandReader.
  media::Rgb8 next();

  /// What was damaged, in words; empty: nothing.
  std::string damage() const;
  int64_t n_damaged() const;
  /// Most bytes in decoded frames and conversions at once, as counted.
  int64_t peak_bytes() const;

 private:
  const FilmPlan& film_;
  int width_;
  int height_;
  media::ImageLimits limits_;
  std::optional<media::VideoReader> reader_;  // none for a list
  size_t next_ = 0;                           // of a list
};

/// Upper bound of the heap that reading the film takes, `n_held` frames included.
int64_t film_frames_bytes(const FilmPlan& film, int width, int height, int n_held);

}  // namespace plateau::engine

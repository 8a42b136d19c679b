// Clock films and how the tests read them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "media/fixtures.h"
#include "media/video.h"
#include "support/film_writer.h"

namespace plateau::media::testing {

/// Frame i shows the clock at `i`. Returns the path.
std::string write_clock(const TempDir& dir, const std::string& name, const test::FilmSpec& spec,
                        int64_t n_frames, const std::function<int64_t(int64_t)>& ticks = {});

struct ReadFilm {
  std::vector<int64_t> clocks;
  std::vector<double> timestamps_s;
  std::vector<double> shown_s;
  VideoReadReport report;
};

/// All frames of the plan, their clocks read.
ReadFilm read_clocks(const std::string& path, const FramePlan& plan,
                     const VideoReadOptions& options = {});
/// The same for what probe_video() says of the film.
ReadFilm read_film(const std::string& path, const FrameSampling& sampling,
                   const VideoReadOptions& options = {});

/// One frame, by default the first.
Rgb8 read_picture(const std::string& path, const VideoReadOptions& options = {}, double time_s = 0);

}  // namespace plateau::media::testing

#include "media/video_fixtures.h"

#include <gtest/gtest.h>

namespace plateau::media::testing {

std::string write_clock(const TempDir& dir, const std::string& name, const test::FilmSpec& spec,
                        int64_t n_frames, const std::function<int64_t(int64_t)>& ticks) {
  const std::string path = dir.file(name);
  test::write_film(path, spec, n_frames, test::draw_clock, ticks);
  return path;
}

ReadFilm read_clocks(const std::string& path, const FramePlan& plan,
                     const VideoReadOptions& options) {
  ReadFilm film;
  VideoReader reader(path, plan, {}, options);
  while (const std::optional<Frame> frame = reader.next()) {
    const Rgb8& picture = frame->picture;
    film.clocks.push_back(test::read_clock(picture.pixels, picture.width, picture.height));
    film.timestamps_s.push_back(frame->timestamp_s);
    film.shown_s.push_back(frame->shown_s);
  }
  film.report = reader.report();
  return film;
}

ReadFilm read_film(const std::string& path, const FrameSampling& sampling,
                   const VideoReadOptions& options) {
  return read_clocks(path, plan_frames(probe_video(path, {}).duration_s, sampling), options);
}

Rgb8 read_picture(const std::string& path, const VideoReadOptions& options, double time_s) {
  VideoReader reader(path, {.n_frames = 1, .first_s = time_s}, {}, options);
  std::optional<Frame> frame = reader.next();
  EXPECT_TRUE(frame.has_value());
  EXPECT_FALSE(reader.next().has_value());
  return frame.has_value() ? frame->picture : Rgb8{};
}

}  // namespace plateau::media::testing

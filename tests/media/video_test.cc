#include "media/video.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "media/video_fixtures.h"

namespace plateau::media {
namespace {

using test::FilmSpec;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::read_clocks;
using testing::read_film;
using testing::read_picture;
using testing::ReadFilm;
using testing::TempDir;
using testing::write_clock;

std::vector<int64_t> arithmetic(int64_t n, int64_t first, int64_t step) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < n; ++i) numbers.push_back(first + i * step);
  return numbers;
}

struct Format {
  const char* container;
  const char* encoder;
  const char* name;  // of the container, as probed
  int b_frames = 0;
};

std::ostream& operator<<(std::ostream& out, const Format& format) {
  return out << format.container << "_" << format.encoder << "_" << format.b_frames;
}

class Formats : public ::testing::TestWithParam<Format> {
 protected:
  FilmSpec spec() const {
    FilmSpec spec;
    spec.container = GetParam().container;
    spec.encoder = GetParam().encoder;
    spec.b_frames = GetParam().b_frames;
    if (spec.encoder == "ffv1") spec.pixel_format = "yuv420p";
    if (spec.encoder == "rawvideo")
      spec.pixel_format = spec.container == "avi" ? "bgr24" : "yuv420p";
    if (spec.encoder == "gif") spec.pixel_format = "rgb8";
    if (spec.encoder == "libx265") spec.encoder_options = {{"x265-params", "log-level=none"}};
    if (spec.encoder == "png") spec.pixel_format = "rgb24";
    return spec;
  }
};

TEST_P(Formats, TheFrameAtATimeIsTheOneAskedFor) {
  if (!test::has_encoder(GetParam().encoder)) GTEST_SKIP() << "not in this build of FFmpeg";
  const TempDir dir;
  const std::string path = write_clock(dir, "film", spec(), 250);  // 25 Hz, 10 s
  const VideoInfo info = probe_video(path, {});
  EXPECT_EQ(info.width, 60);
  EXPECT_EQ(info.height, 48);
  EXPECT_EQ(info.container, GetParam().name);
  EXPECT_NEAR(info.duration_s, 10.0, 0.001);
  EXPECT_NEAR(info.fps, 25.0, 0.01);
  const ReadFilm film = read_film(path, {.fps = 1});
  EXPECT_EQ(film.clocks, arithmetic(10, 0, 25));
  EXPECT_EQ(film.report.n_damaged, 0) << film.report.damage();
  EXPECT_EQ(film.report.n_disordered, 0);
  EXPECT_EQ(film.report.n_after_end, 0);
  // Every frame, at the middle of its time; and times between frames show the earlier one.
  EXPECT_EQ(read_clocks(path, {.n_frames = 250, .first_s = 0.02, .step_s = 0.04}).clocks,
            arithmetic(250, 0, 1));
  EXPECT_EQ(read_clocks(path, {.n_frames = 5, .first_s = 1.039, .step_s = 0.0}).clocks,
            arithmetic(5, 25, 0));
}

TEST_P(Formats, JumpsChangeNothing) {
  if (!test::has_encoder(GetParam().encoder)) GTEST_SKIP() << "not in this build of FFmpeg";
  const TempDir dir;
  const std::string path = write_clock(dir, "film", spec(), 250);
  for (const double step_s : {0.3, 0.72, 1.44, 3.3}) {
    for (const double first_s : {0.0, 0.46, 5.02}) {
      const FramePlan plan{.n_frames = static_cast<int64_t>((9.99 - first_s) / step_s) + 1,
                           .first_s = first_s,
                           .step_s = step_s};
      const ReadFilm jumping = read_clocks(path, plan);
      const ReadFilm walking = read_clocks(path, plan, {.seek = false});
      EXPECT_EQ(jumping.clocks, walking.clocks) << first_s << " + i * " << step_s;
      EXPECT_EQ(jumping.shown_s, walking.shown_s);
      EXPECT_EQ(walking.report.n_seeks, 0);
      // Half a second between frames that stand alone: a jump that lands too late costs that much
      // again, once, and the first frame of a file with an index at its end is decoded twice.
      EXPECT_LE(jumping.report.n_decoded, walking.report.n_decoded + 1 + GetParam().b_frames * 12);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Formats,
    ::testing::Values(
        Format{"mp4", "mpeg4", "mov"}, Format{"mp4", "mpeg4", "mov", 2},
        Format{"mov", "mjpeg", "mov"}, Format{"mov", "png", "mov"},
        Format{"mov", "prores_ks", "mov"}, Format{"matroska", "mpeg4", "matroska"},
        Format{"matroska", "mpeg4", "matroska", 2}, Format{"matroska", "ffv1", "matroska"},
        Format{"avi", "mpeg4", "avi"}, Format{"avi", "mpeg4", "avi", 2},
        Format{"avi", "mjpeg", "avi"}, Format{"avi", "rawvideo", "avi"},
        Format{"avi", "ffv1", "avi"}, Format{"mpegts", "mpeg2video", "mpegts"},
        Format{"mpegts", "mpeg2video", "mpegts", 2}, Format{"gif", "gif", "gif"},
        Format{"mp4", "libx264", "mov", 3}, Format{"matroska", "libx264", "matroska", 3},
        Format{"mpegts", "libx264", "mpegts", 3}, Format{"mp4", "libx265", "mov", 3},
        Format{"matroska", "libvpx", "matroska"}, Format{"matroska", "libvpx-vp9", "matroska"},
        Format{"ogg", "libtheora", "ogg"}),
    [](const auto& param_info) {
      std::ostringstream name;
      name << param_info.param;
      std::string text = name.str();
      std::replace(text.begin(), text.end(), '-', '_');
      return text;
    });

TEST(VideoReader, JumpsSaveDecoding) {
  const TempDir dir;
  for (const char* container : {"mp4", "matroska", "avi"}) {
    const std::string path =
        write_clock(dir, "film", {.container = container, .tick_den = 10, .gop = 10}, 6000);
    const FramePlan plan{.n_frames = 6, .first_s = 50, .step_s = 100};
    const ReadFilm jumping = read_clocks(path, plan);
    const ReadFilm walking = read_clocks(path, plan, {.seek = false});
    EXPECT_EQ(jumping.clocks, arithmetic(6, 500, 1000)) << container;
    EXPECT_EQ(walking.clocks, jumping.clocks);
    EXPECT_GE(jumping.report.n_seeks, 5) << container;
    EXPECT_LT(jumping.report.n_decoded, 200) << container;
    EXPECT_GT(walking.report.n_decoded, 5000) << container;
  }
}

TEST(VideoReader, VariableRateShowsTheLastFrameNotAfterTheTime) {
  const TempDir dir;
  const std::vector<int64_t> ticks{0, 1, 7, 8, 9, 40, 41, 90, 95, 96};  // tenths of a second
  for (const char* container : {"mp4", "matroska"}) {
    const std::string path = write_clock(dir, "film", {.container = container, .tick_den = 10}, 10,
                                         [&](int64_t i) { return ticks[static_cast<size_t>(i)]; });
    const VideoInfo info = probe_video(path, {});
    EXPECT_NEAR(info.duration_s, 9.7, 0.001) << container;
    for (const bool seek : {true, false}) {
      const ReadFilm film = read_film(path, {.fps = 1}, {.seek = seek});
      // At 0, 1, ..., 9 s.
      EXPECT_THAT(film.clocks, ElementsAre(0, 4, 4, 4, 5, 6, 6, 6, 6, 7)) << container;
      EXPECT_THAT(film.shown_s[1], ::testing::DoubleNear(0.9, 0.001));
    }
    const ReadFilm fine = read_clocks(path, {.n_frames = 97, .step_s = 0.1});
    for (size_t i = 0; i < fine.clocks.size(); ++i) {
      const auto next = std::upper_bound(ticks.begin(), ticks.end(), static_cast<int64_t>(i));
      EXPECT_EQ(fine.clocks[i], next - ticks.begin() - 1) << container << " tenth " << i;
    }
  }
}

TEST(VideoReader, TicksThatRoundTimesAreForgiven) {
  const TempDir dir;
  // Matroska counts milliseconds: frame 2 of 30 Hz is due at 0.0667 s and stored at 0.067 s.
  const std::string path = write_clock(dir, "film", {.container = "matroska", .tick_den = 30}, 90);
  EXPECT_EQ(read_clocks(path, {.n_frames = 90, .step_s = 1 / 30.0}).clocks, arithmetic(90, 0, 1));
}

TEST(VideoReader, TimeBeginsWithTheFirstFrame) {
  const TempDir dir;
  for (const char* container : {"mpegts", "matroska", "mp4"}) {
    const FilmSpec spec{.container = container,
                        .encoder = std::string(container) == "mpegts" ? "mpeg2video" : "mpeg4",
                        .sound = std::string(container) == "matroska"};
    const std::string path =
        write_clock(dir, "film", spec, 100, [](int64_t i) { return 1000 + i; });
    EXPECT_NEAR(probe_video(path, {}).duration_s, 4.0, 0.001) << container;
    const ReadFilm film = read_film(path, {.fps = 1});
    EXPECT_THAT(film.clocks, ElementsAre(0, 25, 50, 75)) << container;
    EXPECT_THAT(film.shown_s,
                ElementsAre(0, ::testing::DoubleNear(1, 0.001), ::testing::DoubleNear(2, 0.001),
                            ::testing::DoubleNear(3, 0.001)));
  }
}

TEST(VideoReader, APlanIsSpreadOverTheWholeFilm) {
  const TempDir dir;
  const std::string path = write_clock(dir, "film", {.tick_num = 1, .tick_den = 1}, 3600);
  const ReadFilm film = read_film(path, {.fps = 1, .max_frames = 6});
  EXPECT_EQ(film.clocks, arithmetic(6, 300, 600));
  EXPECT_EQ(read_film(path, {.fps = 1}).clocks, arithmetic(3600, 0, 1));
  EXPECT_EQ(read_film(path, {.fps = 1, .start_s = 3590, .end_s = 3595}).clocks,
            arithmetic(5, 3590, 1));
}

TEST(VideoReader, MissingLengthsAreFound) {
  const TempDir dir;
  const std::string live =
      write_clock(dir, "live", {.container = "matroska", .muxer_options = {{"live", "1"}}}, 250);
  const VideoInfo info = probe_video(live, {});
  EXPECT_NEAR(info.duration_s, 10.0, 0.001);
  EXPECT_TRUE(info.duration_walked);
  EXPECT_NEAR(info.fps, 25, 0.01);
  EXPECT_EQ(read_film(live, {.fps = 1}).clocks, arithmetic(10, 0, 25));
  const std::string pieces = write_clock(
      dir, "pieces",
      {.muxer_options = {{"movflags", "empty_moov+frag_keyframe+default_base_moof"}}}, 250);
  EXPECT_NEAR(probe_video(pieces, {}).duration_s, 10.0, 0.001);
  EXPECT_EQ(read_film(pieces, {.fps = 1}).clocks, arithmetic(10, 0, 25));
  EXPECT_EQ(read_film(pieces, {.fps = 1}, {.seek = false}).clocks, arithmetic(10, 0, 25));
}

TEST(VideoReader, OneFrame) {
  const TempDir dir;
  for (const char* container : {"mp4", "matroska", "avi", "gif"}) {
    FilmSpec spec{.container = container};
    if (spec.container == "gif")
      spec = {.container = "gif", .encoder = "gif", .pixel_format = "rgb8"};
    const std::string path = write_clock(dir, "film", spec, 1, [](int64_t) { return int64_t{0}; });
    const VideoInfo info = probe_video(path, {});
    EXPECT_LE(info.duration_s, 0.2) << container;
    EXPECT_THAT(read_film(path, {.fps = 1}).clocks, ElementsAre(0)) << container;
  }
}

TEST(VideoReader, OddSizesAndExactSizes) {
  const TempDir dir;
  for (const auto& [width, height] : {std::pair(61, 49), {17, 35}, {641, 33}, {16, 16}}) {
    for (const char* encoder : {"mpeg4", "ffv1", "mjpeg"}) {
      FilmSpec spec{.container = "matroska", .encoder = encoder, .width = width, .height = height};
      if (spec.encoder == "ffv1") spec.pixel_format = "yuv420p";
      const std::string path = write_clock(dir, "film", spec, 3);
      const VideoInfo info = probe_video(path, {});
      EXPECT_EQ(info.width, width);
      EXPECT_EQ(info.height, height);
      const Rgb8 own = read_picture(path);
      EXPECT_EQ(own.width, width);
      EXPECT_EQ(own.height, height);
      const Rgb8 asked = read_picture(path, {.width = 100, .height = 84}, 0.05);
      EXPECT_EQ(asked.width, 100);
      EXPECT_EQ(asked.height, 84);
      EXPECT_EQ(asked.pixels.size(), 100u * 84u * 3u);
      EXPECT_EQ(test::read_clock(asked.pixels, 100, 84), 1) << encoder << width;
    }
  }
}

TEST(VideoReader, SoundIsPassedOver) {
  const TempDir dir;
  for (const char* container : {"mov", "matroska", "avi"}) {
    const std::string path = write_clock(dir, "film", {.container = container, .sound = true}, 250);
    EXPECT_EQ(read_film(path, {.fps = 1}).clocks, arithmetic(10, 0, 25)) << container;
  }
}

TEST(VideoReader, ThreadsYieldTheSameFrames) {
  const TempDir dir;
  FilmSpec spec{.container = "matroska", .encoder = "ffv1", .pixel_format = "yuv420p"};
  const std::string path = write_clock(dir, "film", spec, 250);
  EXPECT_EQ(read_film(path, {.fps = 5}, {.n_threads = 4}).clocks,
            read_film(path, {.fps = 5}).clocks);
}

TEST(VideoReader, CanBeCancelledAnywhere) {
  const TempDir dir;
  const std::string path =
      write_clock(dir, "film", {.container = "mpegts", .encoder = "mpeg2video"}, 250);
  int n_polls = 0;
  probe_video(path, {}, [&] { return ++n_polls < 0; });
  EXPECT_GT(n_polls, 250);  // its length is found packet by packet
  for (const int stop : {1, 2, 10, 100, n_polls - 1}) {
    int n = 0;
    EXPECT_EQ(error_of([&] { probe_video(path, {}, [&] { return ++n >= stop; }); }).code(),
              ErrorCode::kCancelled)
        << stop;
  }
  bool stop = false;
  VideoReader reader(path, {.n_frames = 10, .step_s = 1}, {},
                     {.should_cancel = [&] { return stop; }});
  EXPECT_TRUE(reader.next().has_value());
  stop = true;
  EXPECT_EQ(error_of([&] { reader.next(); }).code(), ErrorCode::kCancelled);
  stop = false;
  EXPECT_EQ(error_of([&] { reader.next(); }).code(), ErrorCode::kCancelled);
  EXPECT_EQ(error_of([&] {
              probe_video(path, {}, []() -> bool { throw std::runtime_error("no"); });
            }).code(),
            ErrorCode::kCancelled);
}

TEST(VideoReader, RefusesOptionsThatMakeNoSense) {
  const TempDir dir;
  const std::string path = write_clock(dir, "film", {}, 3);
  const auto code = [&](const VideoReadOptions& options) {
    return error_of([&] { VideoReader(path, {.n_frames = 1}, {}, options); }).code();
  };
  EXPECT_EQ(code({.width = 10}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.width = -1, .height = 5}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.width = 100'000, .height = 100'000}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.n_threads = 0}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.n_threads = 65}), ErrorCode::kInvalidArgument);
}

TEST(VideoReader, TimesAfterTheEndShowTheLastFrameAndAreCounted) {
  const TempDir dir;
  const std::string path = write_clock(dir, "film", {}, 50);
  const ReadFilm film = read_clocks(path, {.n_frames = 6, .step_s = 1.1});
  EXPECT_THAT(film.clocks, ElementsAre(0, 27, 49, 49, 49, 49));
  EXPECT_EQ(film.report.n_after_end, 3);  // 2.2 s is within a second of the end
  EXPECT_THAT(film.report.damage(), HasSubstr("3 frames lie after the last one"));
}

}  // namespace
}  // namespace plateau::media

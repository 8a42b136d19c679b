// Films are read back with the reader that the engine uses.
#include "eval/film_scene.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "eval/film_writer.h"
#include "eval_test_support.h"
#include "media/video.h"

namespace plateau::eval {
namespace {

SceneOptions frame_of_one_cell(uint64_t seed = 7, int n_objects = 3) {
  SceneOptions options;
  options.width = 112;
  options.height = 112;
  options.n_objects = n_objects;
  options.seed = seed;
  return options;
}

std::vector<media::Rgb8> frames_of(const std::string& path, double fps) {
  const media::VideoInfo info = media::probe_video(path, {});
  media::VideoReader reader(path, media::plan_frames(info.duration_s, {.fps = fps}), {});
  std::vector<media::Rgb8> frames;
  while (auto frame = reader.next()) frames.push_back(std::move(frame->picture));
  return frames;
}

/// Mean absolute difference within the box.
double difference(const media::Rgb8& a, const media::Rgb8& b, const Drawing& box) {
  double sum = 0;
  for (int64_t y = box.y; y < box.y + box.h; ++y) {
    for (int64_t x = 3 * box.x; x < 3 * (box.x + box.w); ++x) {
      const auto at = static_cast<size_t>(y * 3 * a.width + x);
      sum += std::abs(a.pixels[at] - b.pixels[at]);
    }
  }
  return sum / static_cast<double>(box.w * box.h * 3);
}

TEST(FilmScene, EachObjectIsThereInItsTimeOnly) {
  const TempDir dir;
  for (const std::string name : {"a.mp4", "a.mkv", "a.avi"}) {
    const Scene scene = write_film_scene(frame_of_one_cell(), {.seconds = 40}, dir.file(name), {});
    EXPECT_EQ(scene.seconds, 40);
    EXPECT_EQ(scene.drawings.size(), 3U);
    const std::vector<media::Rgb8> frames = frames_of(dir.file(name), 1);
    ASSERT_EQ(frames.size(), 40U) << name;
    for (const Drawing& drawing : scene.drawings) {
      EXPECT_EQ(drawing.end_s, drawing.start_s + 1);
      for (size_t i = 1; i < frames.size(); ++i) {
        const bool others =
            std::any_of(scene.drawings.begin(), scene.drawings.end(), [&](const Drawing& other) {
              return other.start_s != drawing.start_s &&
                     std::abs(other.start_s + 0.5 - static_cast<double>(i)) < 1;
            });
        if (others) continue;
        const double changed = difference(frames[i], frames[i - 1], drawing);
        const bool enters = static_cast<double>(i) == drawing.start_s;
        const bool leaves = static_cast<double>(i) == drawing.end_s;
        if (enters || leaves) {
          EXPECT_GT(changed, 20) << name << " frame " << i;
        } else {
          EXPECT_LT(changed, 15) << name << " frame " << i;
        }
      }
    }
  }
}

TEST(FilmScene, TheBackdropChangesSlowly) {
  const TempDir dir;
  write_film_scene(frame_of_one_cell(3, 1), {.seconds = 61}, dir.file("a.mp4"), {});
  const std::vector<media::Rgb8> frames = frames_of(dir.file("a.mp4"), 1);
  const Drawing everywhere = [] {
    Drawing box;
    box.w = box.h = 112;
    return box;
  }();
  EXPECT_GT(difference(frames[0], frames[30], everywhere), 20);
  EXPECT_GT(difference(frames[30], frames[60], everywhere), 20);
}

TEST(FilmScene, TheSeedDecidesEveryByte) {
  const TempDir dir;
  const auto bytes = [&](const std::string& name, uint64_t seed) {
    write_film_scene(frame_of_one_cell(seed), {.seconds = 8}, dir.file(name), {});
    return read_file(dir.file(name));
  };
  const std::string first = bytes("a.mp4", 7);
  EXPECT_EQ(bytes("b.mp4", 7), first);
  EXPECT_NE(bytes("c.mp4", 8), first);
}

TEST(FilmScene, AtAnyRateASampleASecondSeesEachObjectOnce) {
  const TempDir dir;
  SceneOptions options = frame_of_one_cell(5, 6);
  options.width = 225;
  options.height = 113;  // odd
  options.n_decoys = 2;
  const Scene scene = write_film_scene(options, {.seconds = 9.5, .fps = 12}, dir.file("a.mp4"), {});
  EXPECT_EQ(scene.n_cols, 2);
  std::vector<double> starts;
  for (const Drawing& drawing : scene.drawings) {
    EXPECT_EQ(drawing.start_s, std::floor(drawing.start_s));
    EXPECT_LE(drawing.end_s, 9.5);
    starts.push_back(drawing.start_s);
  }
  std::sort(starts.begin(), starts.end());
  EXPECT_EQ(std::unique(starts.begin(), starts.end()), starts.end());
  EXPECT_EQ(scene.drawings.size(), 8U);
  EXPECT_EQ(frames_of(dir.file("a.mp4"), 12).size(), 114U);
}

TEST(FilmScene, OneFrameOfMany) {
  const TempDir dir;
  const Scene scene = write_film_scene(
      frame_of_one_cell(1, 1), {.seconds = 3, .fps = 10, .needle_s = 0.01}, dir.file("a.mp4"), {});
  EXPECT_NEAR(scene.drawings[0].end_s - scene.drawings[0].start_s, 0.1, 1e-9);
}

TEST(FilmScene, WhatIsNotFinishedIsRemoved) {
  const TempDir dir;
  int n_calls = 0;
  EXPECT_EQ(code_of([&] {
              write_film_scene(frame_of_one_cell(), {.seconds = 20}, dir.file("a.mp4"),
                               [&](int64_t n_done, int64_t n_frames) {
                                 EXPECT_EQ(n_done, ++n_calls);
                                 EXPECT_EQ(n_frames, 20);
                                 if (n_done == 5) throw Error(ErrorCode::kCancelled, "stop");
                               });
            }),
            ErrorCode::kCancelled);
  EXPECT_FALSE(std::filesystem::exists(dir.file("a.mp4")));
}

TEST(FilmScene, RefusesBadOptions) {
  const TempDir dir;
  const auto code = [&](const FilmOptions& film, const std::string& name = "a.mp4",
                        SceneOptions scene = frame_of_one_cell()) {
    return code_of([&] { write_film_scene(scene, film, dir.file(name), {}); });
  };
  using enum ErrorCode;
  EXPECT_EQ(code({.seconds = 0}), kInvalidArgument);
  EXPECT_EQ(code({.seconds = std::nan("")}), kInvalidArgument);
  EXPECT_EQ(code({.seconds = 1e9}), kInvalidArgument);
  EXPECT_EQ(code({.seconds = 2}), kInvalidArgument);  // three objects
  EXPECT_EQ(code({.seconds = 9, .needle_s = 4}), kInvalidArgument);
  EXPECT_EQ(code({.seconds = 9, .needle_s = 0}), kInvalidArgument);
  EXPECT_EQ(code({.fps = 0}), kInvalidArgument);
  EXPECT_EQ(code({.fps = 61}), kInvalidArgument);
  EXPECT_EQ(code({}, "a.webm"), kInvalidArgument);
  EXPECT_EQ(code({}, "none/a.mp4"), kNotFound);
  SceneOptions wide = frame_of_one_cell();
  wide.width = kMaxFrameSide + 1;
  EXPECT_EQ(code({}, "a.mp4", wide), kInvalidArgument);
  EXPECT_EQ(code({}, "a.mp4", frame_of_one_cell(1, 9)), kInvalidArgument);
  SceneOptions photo = frame_of_one_cell();
  photo.background = "missing.jpg";
  EXPECT_EQ(code({}, "a.mp4", photo), kNotFound);
  EXPECT_FALSE(std::filesystem::exists(dir.file("a.mp4")));
}

TEST(FilmScene, AFullDiskIsAnError) {
  const TempDir dir;
  std::filesystem::create_symlink("/dev/full", dir.file("a.mp4"));
  EXPECT_EQ(code_of([&] {
              write_film_scene(frame_of_one_cell(), {.seconds = 20}, dir.file("a.mp4"), {});
            }),
            ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace plateau::eval

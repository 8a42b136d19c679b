#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/memory.h"
#include "media/video_fixtures.h"
#include "support/memory_figures.h"

namespace plateau::media {
namespace {

using test::FilmSpec;
using test::kMemoryIsOurs;
using testing::read_film;
using testing::ReadFilm;
using testing::TempDir;
using testing::write_clock;

struct Peak {
  int64_t before = 0;  // RssAnon
  int64_t peak = 0;
  int64_t heap = 0;  // most bytes that were allocated when a frame had been read
};

int64_t heap_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

/// Of a process of its own, which fails the test when it fails.
Peak measure(const std::function<void(Peak&)>& work) {
  int pipe_ends[2] = {-1, -1};
  EXPECT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::malloc_trim(0);
    Peak peak;
    {
      AnonWatch watch;
      peak.before = anon_bytes();
      work(peak);
      peak.peak = watch.peak_bytes();
    }
    const bool written = ::write(pipe_ends[1], &peak, sizeof(peak)) == sizeof(peak);
    ::_exit(written && !::testing::Test::HasFailure() ? 0 : 1);
  }
  Peak peak;
  EXPECT_EQ(::read(pipe_ends[0], &peak, sizeof(peak)), ssize_t{sizeof(peak)});
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
  return peak;
}

/// In a process of its own, too: what writing leaves in the heap would be measured with the
/// reading.
std::string write_apart(const TempDir& dir, const std::string& name, const FilmSpec& spec,
                        int64_t n_frames) {
  measure([&](Peak&) { write_clock(dir, name, spec, n_frames); });
  return dir.file(name);
}

int64_t read_all(const std::string& path, int size, Peak& peak) {
  const VideoInfo info = probe_video(path, {});
  VideoReader reader(path, plan_frames(info.duration_s, {.fps = 1}), {},
                     {.width = size, .height = size});
  int64_t n_frames = 0;
  while (reader.next().has_value()) {
    peak.heap = std::max(peak.heap, heap_bytes());
    ++n_frames;
  }
  return n_frames;
}

TEST(VideoMemory, DoesNotGrowWithTheFilm) {
  if (!kMemoryIsOurs) GTEST_SKIP() << "memory is the sanitizer's";
  const TempDir dir;
  const FilmSpec spec{
      .container = "matroska", .width = 320, .height = 240, .tick_den = 1, .gop = 60};
  std::vector<int64_t> peaks;
  for (const int64_t seconds : {60, 600, 3600}) {
    const std::string path = write_apart(dir, "film", spec, seconds);
    const Peak peak = measure([&](Peak& heap) { EXPECT_EQ(read_all(path, 112, heap), seconds); });
    peaks.push_back(peak.peak);
    RecordProperty("peak_anon_" + std::to_string(seconds), std::to_string(peak.peak));
  }
  for (const int64_t peak : peaks) {
    EXPECT_NEAR(static_cast<double>(peak), static_cast<double>(peaks[0]),
                0.02 * static_cast<double>(peaks[0]));
  }
}

TEST(VideoMemory, TenHoursAreAsOneMinute) {
  if (!kMemoryIsOurs) GTEST_SKIP() << "memory is the sanitizer's";
  const TempDir dir;
  for (const char* container : {"matroska", "mpegts"}) {
    const FilmSpec spec{.container = container,
                        .encoder = "mpeg2video",
                        .width = 64,
                        .height = 48,
                        .tick_den = 1,
                        .gop = 300};
    FilmSpec timed = spec;
    timed.encoder_options = {{"strict", "-2"}};
    const auto peak_of = [&](int64_t n_frames) {
      const std::string path = write_apart(dir, "film", timed, n_frames);
      return measure([&](Peak& heap) { EXPECT_EQ(read_all(path, 28, heap), n_frames); });
    };
    const Peak minute = peak_of(60);
    const Peak hours = peak_of(36'000);
    // The index of the 120 frames that stand alone; less than 2 bytes for each of the frames.
    EXPECT_LE(hours.heap - minute.heap, int64_t{64} << 10) << container;
    // The heap grows in steps of 128 KiB, one of which is 2 % of a process as small as this, and
    // begins with the gaps that earlier tests have left. An index entry for each of the frames
    // would be 864 kB.
    EXPECT_LE(hours.peak - minute.peak, int64_t{512} << 10) << container;
    RecordProperty(std::string("peak_anon_minute_") + container, std::to_string(minute.peak));
    RecordProperty(std::string("peak_anon_ten_hours_") + container, std::to_string(hours.peak));
  }
}

TEST(VideoMemory, StaysWithinTheEstimate) {
  const TempDir dir;
  struct Case {
    const char* container;
    const char* encoder;
    const char* pixel_format;
    int b_frames;
  };
  for (const Case& c : {Case{"mp4", "mpeg4", "", 2},
                        {"mp4", "mpeg4", "", 0},
                        {"avi", "mjpeg", "yuvj420p", 0},
                        {"matroska", "ffv1", "yuv420p", 0},
                        {"mov", "png", "rgba", 0},
                        {"mpegts", "mpeg2video", "", 2},
                        {"avi", "rawvideo", "bgr24", 0},
                        {"mov", "prores_ks", "", 0},
                        {"mp4", "libx264", "yuv420p", 3},
                        {"mp4", "libx265", "yuv420p", 3},
                        {"matroska", "libvpx-vp9", "yuv420p", 0},
                        {"matroska", "libvpx", "yuv420p", 0}}) {
    if (!test::has_encoder(c.encoder)) continue;
    for (const auto& [width, height] : {std::pair(320, 240), {1280, 720}}) {
      if (!kMemoryIsOurs && width > 320) continue;  // slow, and only the counted bytes remain
      FilmSpec spec{.container = c.container, .encoder = c.encoder};
      spec.pixel_format = c.pixel_format;
      spec.b_frames = c.b_frames;
      spec.width = width;
      spec.height = height;
      if (spec.encoder == "libx264")
        spec.encoder_options = {{"refs", "4"}, {"preset", "ultrafast"}};
      if (spec.encoder == "libx265")
        spec.encoder_options = {{"preset", "ultrafast"}, {"x265-params", "log-level=none"}};
      if (spec.encoder.starts_with("libvpx")) spec.encoder_options = {{"cpu-used", "8"}};
      const std::string path =
          kMemoryIsOurs ? write_apart(dir, "film", spec, 30) : write_clock(dir, "film", spec, 30);
      const VideoInfo info = probe_video(path, {});
      const int64_t estimate = video_reader_bytes(info.memory, 448, 448);
      const auto read = [&](Peak&) {
        VideoReader reader(path, {.n_frames = 30, .step_s = 0.04}, {},
                           {.width = 448, .height = 448});
        while (reader.next().has_value()) {
        }
        const VideoReadReport& report = reader.report();
        // Raw frames stay in their packets.
        EXPECT_GT(report.decoder_frame_bytes, spec.encoder == "rawvideo" ? -1 : width * height);
        EXPECT_LE(report.decoder_frame_bytes,
                  (info.memory.frames_held + 2) * info.memory.frame_bytes);
        EXPECT_LE(report.decoder_frame_bytes + report.picture_bytes, estimate);
      };
      if (kMemoryIsOurs) {
        const Peak peak = measure(read);
        EXPECT_LE(peak.peak - peak.before, estimate) << c.encoder << " " << width;
      } else {
        Peak unused;
        read(unused);
      }
    }
  }
}

TEST(VideoMemory, AnIndexIsInTheEstimate) {
  const TempDir dir;
  const auto memory = [&](int64_t n_frames) {
    return probe_video(write_clock(dir, "film", {.tick_den = 1}, n_frames), {}).memory;
  };
  EXPECT_GE(memory(2000).index_bytes, 2000 * 24);
  EXPECT_LT(memory(10).index_bytes, 1000);
}

TEST(VideoMemory, TheEstimateGrowsWithEachPart) {
  const VideoMemory memory{.frame_bytes = 1000,
                           .frames_held = 4,
                           .codec_bytes = 50,
                           .index_bytes = 7,
                           .rgb_bytes = 3000,
                           .upright_height = 20};
  const int64_t base = video_reader_bytes(memory, 28, 28);
  EXPECT_GT(base, 4 * 1000 + 50 + 7 + 3000 + 28 * 28 * 3);
  EXPECT_GT(video_reader_bytes(memory, 56, 28), base);
  EXPECT_GE(video_reader_bytes(memory, 28, 28, 4), base + 3 * (1000 + 50));
}

}  // namespace
}  // namespace plateau::media

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/memory.h"
#include "media/video_fixtures.h"

namespace plateau::media {
namespace {

using test::FilmSpec;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::read_file;
using testing::read_film;
using testing::ReadFilm;
using testing::TempDir;
using testing::write_clock;

constexpr int64_t kMiB = int64_t{1} << 20;

void expect_no_address(const Error& error) {
  EXPECT_THAT(error.what(), Not(::testing::ContainsRegex("0x[0-9a-f]{8}")));
  EXPECT_THAT(error.what(), Not(HasSubstr("/usr/")));
}

ErrorCode code_of(const std::string& path, const VideoLimits& limits = {}) {
  const Error error = error_of([&] { probe_video(path, limits); });
  expect_no_address(error);
  return error.code();
}

TEST(HostileVideo, IsNoFilm) {
  const TempDir dir;
  EXPECT_EQ(code_of(dir.file("none.mp4")), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(dir.write("empty.mp4", "")), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of(dir.path()), ErrorCode::kUnsupported);
  ASSERT_EQ(::mkfifo(dir.file("fifo.mp4").c_str(), 0600), 0);
  EXPECT_EQ(code_of(dir.file("fifo.mp4")), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of("/dev/null"), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of(dir.write("text.mp4", "This is no film.\nIt is a text.\n")),
            ErrorCode::kUnsupported);
  EXPECT_EQ(code_of(dir.write("short.mp4", "x")), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of(""), ErrorCode::kNotFound);
  EXPECT_EQ(code_of("http://localhost/film.mp4"), ErrorCode::kNotFound);
  testing::write_blank_png(64, 64, dir.file("picture.png"));
  const Error error = error_of([&] { probe_video(dir.file("picture.png"), {}); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(error.what(), HasSubstr("got png_pipe"));
}

TEST(HostileVideo, NamesAreOnlyNames) {
  const TempDir dir;
  const std::string film = read_file(write_clock(dir, "film", {}, 50));
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  for (const std::string name : {"-", "-i", "--help", "concat:a|b", "http:x", "a%03d.mp4", "pipe:0",
                                 "file:x", "a\nb", "film?.mp4", "data:x,y"}) {
    dir.write(name, film);
    EXPECT_EQ(read_film(name, {.fps = 1}).clocks, (std::vector<int64_t>{0, 25})) << name;
  }
  std::filesystem::current_path(before);
}

TEST(HostileVideo, OtherContainersAndCodecsAreRefusedByName) {
  const TempDir dir;
  const auto message = [&](const FilmSpec& spec) {
    const Error error = error_of([&] { probe_video(write_clock(dir, "film", spec, 20), {}); });
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << error.what();
    return std::string(error.what());
  };
  EXPECT_THAT(message({.container = "flv", .encoder = "flv"}), HasSubstr("got flv"));
  EXPECT_THAT(message({.container = "nut"}), HasSubstr("got nut"));
  EXPECT_THAT(message({.container = "wav", .sound = true, .video = false}), HasSubstr("got wav"));
  EXPECT_THAT(message({.container = "matroska", .encoder = "huffyuv", .pixel_format = "yuv422p"}),
              HasSubstr("got huffyuv"));
  EXPECT_THAT(message({.container = "mov", .sound = true, .video = false}),
              HasSubstr("without a video stream"));
  EXPECT_THAT(message({.container = "matroska", .sound = true, .video = false}),
              HasSubstr("without a video stream"));
}

TEST(HostileVideo, OpensNothingElse) {
  const TempDir dir;
  const std::string film = write_clock(dir, "film.mp4", {}, 50);
  for (const std::string& text :
       {"ffconcat version 1.0\nfile '" + film + "'\n",
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n" + film + "\n#EXT-X-ENDLIST\n",
        std::string(
            "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\"></MPD>")}) {
    EXPECT_EQ(code_of(dir.write("list.mp4", text)), ErrorCode::kUnsupported) << text;
  }
}

TEST(HostileVideo, PixelsAreCappedBeforeAFrameIsMade) {
  const TempDir dir;
  VideoLimits limits;
  limits.max_pixels = 60 * 48;
  for (const FilmSpec& spec : {FilmSpec{.container = "mp4"},
                               {.container = "matroska"},
                               {.container = "avi"},
                               {.container = "mpegts", .encoder = "mpeg2video"},
                               {.container = "gif", .encoder = "gif", .pixel_format = "rgb8"}}) {
    const std::string path = write_clock(dir, "film", spec, 50);
    limits.max_pixels = 60 * 48;
    EXPECT_EQ(probe_video(path, limits).width, 60) << spec.container;
    --limits.max_pixels;
    EXPECT_EQ(code_of(path, limits), ErrorCode::kResourceExhausted) << spec.container;
    EXPECT_EQ(error_of([&] { VideoReader(path, {.n_frames = 1}, limits); }).code(),
              ErrorCode::kResourceExhausted);
  }
  // Stretched pixels count as shown.
  FilmSpec spec{.container = "mov"};
  spec.aspect_num = 2;
  const std::string path = write_clock(dir, "film", spec, 2);
  limits.max_pixels = 2 * 60 * 48;
  EXPECT_EQ(probe_video(path, limits).width, 120);
  --limits.max_pixels;
  EXPECT_EQ(code_of(path, limits), ErrorCode::kResourceExhausted);
}

void put_be(std::string& bytes, size_t at, uint64_t value, int n_bytes) {
  for (int i = 0; i < n_bytes; ++i) {
    bytes[at + static_cast<size_t>(i)] = static_cast<char>(value >> (8 * (n_bytes - 1 - i)) & 0xff);
  }
}

TEST(HostileVideo, HeadersThatClaimTooMuch) {
  const TempDir dir;
  const std::string film = read_file(write_clock(dir, "film", {}, 50));
  const int64_t before = anon_bytes();
  AnonWatch watch;

  std::string huge = read_file(
      write_clock(dir, "film", {.container = "mov", .encoder = "png", .pixel_format = "rgb24"}, 2));
  const size_t entry = huge.find("png ", huge.find("stsd"));
  put_be(huge, entry + 28, 65535, 2);
  put_be(huge, entry + 30, 65535, 2);
  EXPECT_EQ(code_of(dir.write("huge.mp4", huge)), ErrorCode::kResourceExhausted);

  // A billion frames of one byte, all in one chunk.
  std::string many = film;
  const size_t sizes = many.find("stsz");
  put_be(many, sizes + 8, 1, 4);
  put_be(many, sizes + 12, 1'000'000'000, 4);
  put_be(many, many.find("stsc") + 16, 1'000'000'000, 4);
  EXPECT_EQ(code_of(dir.write("many.mp4", many)), ErrorCode::kCorrupt);

  // A million of them: room for the index, but not in the file.
  put_be(many, sizes + 12, 1'000'000, 4);
  put_be(many, many.find("stsc") + 16, 1'000'000, 4);
  EXPECT_EQ(code_of(dir.write("many.mp4", many)), ErrorCode::kCorrupt);

  using namespace std::string_literals;
  const std::string gif =
      "GIF89a\x60\xea\x60\xea\x80\0\0\0\0\0\xff\xff\xff"s + ",\0\0\0\0\1\0\1\0\0\2\2\x44\1\0;"s;
  EXPECT_EQ(code_of(dir.write("huge.gif", gif)), ErrorCode::kResourceExhausted);
  EXPECT_LT(watch.peak_bytes() - before, 100 * kMiB);
}

TEST(HostileVideo, LimitsOnLengthAndPackets) {
  const TempDir dir;
  const std::string hour = write_clock(dir, "film", {.tick_den = 1}, 3600);
  VideoLimits limits;
  limits.max_duration_s = 3599;
  EXPECT_EQ(code_of(hour, limits), ErrorCode::kResourceExhausted);
  const std::string stream =
      write_clock(dir, "film.ts", {.container = "mpegts", .encoder = "mpeg2video"}, 500);
  limits = {};
  limits.max_packets = 100;
  EXPECT_EQ(code_of(stream, limits), ErrorCode::kResourceExhausted);
  limits = {};
  limits.max_wait_s = 0;
  const Error error = error_of([&] { probe_video(stream, limits); });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.what(), HasSubstr("within 0 s"));
}

struct Kind {
  const char* name;
  FilmSpec spec;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

std::vector<Kind> kinds() {
  std::vector<Kind> all{
      {"mp4", {.container = "mp4"}},
      {"matroska", {.container = "matroska", .b_frames = 2}},
      {"avi", {.container = "avi", .encoder = "mjpeg"}},
      {"mpegts", {.container = "mpegts", .encoder = "mpeg2video"}},
      {"gif", {.container = "gif", .encoder = "gif", .pixel_format = "rgb8"}},
      {"mov", {.container = "mov", .encoder = "png", .pixel_format = "rgb24"}},
      {"ffv1", {.container = "matroska", .encoder = "ffv1", .pixel_format = "yuv420p"}},
  };
  if (test::has_encoder("libx264")) {
    all.push_back({"x264", {.container = "mp4", .encoder = "libx264", .b_frames = 2}});
  }
  return all;
}

/// Reads it all. What comes is a film or an Error of the kinds promised, and nothing is printed.
/// Returns whether frames came.
bool survives(const std::string& path) {
  VideoLimits limits;
  limits.max_pixels = 1'000'000;
  limits.max_wait_s = 20;
  ::testing::internal::CaptureStderr();
  bool read = false;
  try {
    const VideoInfo info = probe_video(path, limits);
    const FramePlan plan = plan_frames(info.duration_s, {.fps = 2, .max_frames = 30});
    VideoReader reader(path, plan, limits, {.width = 56, .height = 56});
    int64_t n_frames = 0;
    while (const std::optional<Frame> frame = reader.next()) {
      EXPECT_EQ(frame->picture.pixels.size(), 56u * 56u * 3u);
      ++n_frames;
    }
    EXPECT_EQ(n_frames, plan.n_frames);
    read = true;
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kUnsupported ||
                error.code() == ErrorCode::kResourceExhausted)
        << error.what();
    expect_no_address(error);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  return read;
}

class Damaged : public ::testing::TestWithParam<Kind> {};

TEST_P(Damaged, CutOffAnywhere) {
  const TempDir dir;
  const std::string film = read_file(write_clock(dir, "film", GetParam().spec, 75));
  for (int part = 0; part < 40; ++part) {
    const size_t n_bytes = 1 + film.size() * static_cast<size_t>(part) / 40;
    survives(dir.write("cut", film.substr(0, n_bytes)));
  }
  for (size_t n_bytes = 1; n_bytes < 64; n_bytes += 5) {
    survives(dir.write("cut", film.substr(0, n_bytes)));
  }
}

TEST_P(Damaged, BytesFlippedAnywhere) {
  const TempDir dir;
  const std::string film = read_file(write_clock(dir, "film", GetParam().spec, 75));
  int n_read = 0;
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    uint32_t state = seed;
    const auto random = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
    std::string bytes = film;
    // Headers are small and decide the most: every other seed damages the first half kilobyte.
    const size_t range = seed % 2 == 0 ? bytes.size() : std::min<size_t>(bytes.size(), 512);
    for (uint32_t i = random() % 12; i < 13; ++i) {
      bytes[random() % range] = static_cast<char>(random());
    }
    n_read += survives(dir.write("flipped", bytes)) ? 1 : 0;
  }
  EXPECT_GT(n_read, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Damaged, ::testing::ValuesIn(kinds()),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(DamagedVideo, IsToldAndTheRestIsRead) {
  const TempDir dir;
  FilmSpec spec{.container = "avi", .encoder = "mjpeg"};
  std::string film = read_file(write_clock(dir, "film", spec, 250));
  EXPECT_EQ(read_film(dir.file("film"), {.fps = 1}).report.damage(), "");
  // The header of each frame that starts between a third and a half of the file.
  size_t at = film.size() / 3;
  int n_broken = 0;
  while ((at = film.find("\xff\xc0", at)) < film.size() / 2) {
    film[at] = 0;
    film[at + 1] = 0;
    ++at;
    ++n_broken;
  }
  ASSERT_GT(n_broken, 10);
  const ReadFilm read = read_film(dir.write("film", film), {.fps = 25}, {.seek = false});
  EXPECT_EQ(read.report.n_damaged, n_broken);
  EXPECT_THAT(read.report.damage(), HasSubstr(std::to_string(n_broken) + " damaged packets"));
  EXPECT_EQ(read.clocks.size(), 250u);
  EXPECT_EQ(read.clocks.front(), 0);
  EXPECT_EQ(read.clocks.back(), 249);
  // Where frames are missing, the one before stands.
  for (size_t i = 1; i < read.clocks.size(); ++i) {
    EXPECT_TRUE(read.clocks[i] == static_cast<int64_t>(i) || read.clocks[i] == read.clocks[i - 1]);
  }
}

TEST(DamagedVideo, WhatTheDecoderPatchesUpIsCounted) {
  const TempDir dir;
  FilmSpec spec{.container = "matroska", .encoder = "ffv1", .pixel_format = "yuv420p"};
  spec.encoder_options = {{"level", "3"}, {"slicecrc", "1"}};
  std::string film = read_file(write_clock(dir, "film", spec, 250));
  EXPECT_EQ(read_film(dir.file("film"), {.fps = 25}).report.damage(), "");
  film[film.size() / 2] = static_cast<char>(film[film.size() / 2] ^ 0x55);
  const ReadFilm read = read_film(dir.write("film", film), {.fps = 25});
  EXPECT_EQ(read.report.n_damaged, 1);
  EXPECT_EQ(read.clocks.size(), 250u);
}

TEST(DamagedVideo, ACutFilmEndsWhereItIsCut) {
  const TempDir dir;
  FilmSpec spec{.container = "mp4"};
  spec.muxer_options = {{"movflags", "faststart"}};
  const std::string film = read_file(write_clock(dir, "film", spec, 2500));
  const std::string path = dir.write("cut", film.substr(0, film.size() / 2));
  const VideoInfo info = probe_video(path, {});
  EXPECT_GT(info.duration_s, 20);
  EXPECT_LT(info.duration_s, 80);
  EXPECT_TRUE(info.duration_walked);
  ASSERT_FALSE(info.notes.empty());
  EXPECT_THAT(info.notes.back(), HasSubstr("says that it lasts 100.000 s"));
  const ReadFilm read = read_film(path, {.fps = 1});
  for (size_t i = 0; i < read.clocks.size(); ++i) {
    EXPECT_EQ(read.clocks[i], static_cast<int64_t>(25 * i));
  }
}

TEST(DamagedVideo, NothingToDecodeIsAnError) {
  const TempDir dir;
  std::string film =
      read_file(write_clock(dir, "film", {.container = "avi", .encoder = "mjpeg"}, 50));
  for (size_t at = film.find("\xff\xc0"); at != std::string::npos;
       at = film.find("\xff\xc0", at + 1)) {
    film[at] = 0;
    film[at + 1] = 0;
  }
  EXPECT_EQ(code_of(dir.write("film", film)), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace plateau::media

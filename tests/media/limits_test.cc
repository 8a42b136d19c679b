#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "media/fixtures.h"
#include "media/image.h"
#include "support/memory_figures.h"

namespace plateau::media {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::TempDir;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr auto kHeaderTime = std::chrono::milliseconds(100);

int64_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key + ":", 0) == 0) return std::stoll(line.substr(key.size() + 1)) * 1024;
  }
  return 0;
}

/// How far the peak of resident memory rises above where it stands now.
int64_t memory_growth(const std::function<void()>& work) {
  std::ofstream("/proc/self/clear_refs") << "5";  // sets the peak to the present
  const int64_t before = status_bytes("VmRSS");
  work();
  return status_bytes("VmHWM") - before;
}

void warm_up(const TempDir& dir) {
  testing::write_blank_png(64, 64, dir.file("warm.png"));
  testing::read_square(dir.file("warm.png"), 64);
}

void expect_refused_from_header(const std::string& path, const ImageLimits& limits) {
  const auto start = std::chrono::steady_clock::now();
  const int64_t growth = memory_growth([&] {
    EXPECT_EQ(error_of([&] { probe_image(path, limits); }).code(), ErrorCode::kResourceExhausted);
    EXPECT_EQ(error_of([&] { TileReader(path, {}, limits); }).code(),
              ErrorCode::kResourceExhausted);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2 * kHeaderTime);
  if (test::kMemoryIsOurs) {
    EXPECT_LT(growth, 32 * kMiB);
  }
}

std::string png_header(uint32_t width, uint32_t height) {
  std::string bytes("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  for (const uint32_t value : {width, height}) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  }
  return bytes + std::string("\x08\x02\0\0\0abcd", 9) + std::string(30, 'x');
}

TEST(Bombs, PngHeaderOf4GigapixelsWithoutData) {
  const TempDir dir;
  warm_up(dir);
  const std::string path = dir.write("bomb.png", png_header(65535, 65535));
  expect_refused_from_header(path, {});
  // The cap raised above it, the file is simply broken.
  ImageLimits limits;
  limits.max_pixels = INT64_MAX;
  EXPECT_EQ(error_of([&] { probe_image(path, limits); }).code(), ErrorCode::kCorrupt);
}

TEST(Bombs, SizesThatOverflow) {
  const TempDir dir;
  for (const auto& [width, height] : {std::pair(0xffffffffu, 0xffffffffu),
                                      {0x7fffffffu, 1u},
                                      {1u, 0x7fffffffu},
                                      {2'000'000u, 10u}}) {
    expect_refused_from_header(dir.write("bomb.png", png_header(width, height)), {});
  }
  EXPECT_EQ(error_of([&] { probe_image(dir.write("zero.png", png_header(0, 5)), {}); }).code(),
            ErrorCode::kCorrupt);
}

TEST(Bombs, GifScreenOf3Gigapixels) {
  const TempDir dir;
  warm_up(dir);
  using namespace std::string_literals;
  // A screen of 60000 x 60000 with one frame of a single pixel.
  const std::string gif =
      "GIF89a\x60\xea\x60\xea\x80\0\0\0\0\0\xff\xff\xff"s + ",\0\0\0\0\1\0\1\0\0\2\2\x44\1\0;"s;
  expect_refused_from_header(dir.write("bomb.gif", gif), {});
}

TEST(Bombs, OneColourPngOverALoweredCap) {
  const TempDir dir;
  warm_up(dir);
  testing::write_blank_png(20'000, 20'000, dir.file("big.png"));
  ImageLimits limits;
  limits.max_pixels = 399'999'999;
  expect_refused_from_header(dir.file("big.png"), limits);
  EXPECT_EQ(probe_image(dir.file("big.png"), {}).width, 20'000);
}

TEST(Memory, DoesNotGrowWithThePicture) {
  if (!test::kMemoryIsOurs) GTEST_SKIP() << "memory is the sanitizer's";
  const TempDir dir;
  warm_up(dir);
  TileGrid grid;
  grid.n_cols = 2;
  grid.n_rows = 2;
  grid.thumbnail = true;
  const auto growth_at = [&](int side) {
    testing::write_blank_png(side, side, dir.file("a.png"));
    return memory_growth([&] { testing::read_grid(dir.file("a.png"), grid); });
  };
  const int64_t small = growth_at(1000);
  const int64_t large = growth_at(10'000);  // 300 MB when decoded
  EXPECT_LT(large - small, 16 * kMiB);
  EXPECT_LT(large, 32 * kMiB);
}

TEST(Spool, IsBounded) {
  const TempDir dir;
  testing::write_png(testing::noise(64, 64), dir.file("a.png"), {.interlaced = true});
  ImageLimits limits;
  limits.max_spool_bytes = 64 * 64 * 3;
  EXPECT_TRUE(probe_image(dir.file("a.png"), limits).spooled);
  --limits.max_spool_bytes;
  const Error error = error_of([&] { probe_image(dir.file("a.png"), limits); });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.what(), HasSubstr("12288"));
  // What is decoded in bands needs no spool.
  testing::write_png(testing::noise(64, 64), dir.file("a.png"), {});
  EXPECT_FALSE(probe_image(dir.file("a.png"), limits).spooled);
}

TEST(Spool, NeedsItsDirectoryAndLeavesNothingThere) {
  const TempDir dir;
  const TempDir spool;
  testing::write_png(testing::noise(64, 64), dir.file("a.png"), {.interlaced = true});
  ImageLimits limits;
  limits.spool_dir = spool.path();
  EXPECT_EQ(testing::read_square(dir.file("a.png"), 64, limits).pixels,
            testing::noise(64, 64).pixels);
  EXPECT_NE(::rmdir(spool.path().c_str()), -1) << "a file was left behind";
  const Error error = error_of([&] { testing::read_square(dir.file("a.png"), 64, limits); });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
}

TEST(Decoder, MemoryIsEstimatedAndBounded) {
  const TempDir dir;
  testing::write_jpeg(testing::gradient(100, 50), dir.file("a.jpg"), {.progressive = true});
  EXPECT_EQ(probe_image(dir.file("a.jpg"), {}).decoder_bytes, 100 * 50 * 3 * 2);
  ImageLimits limits;
  limits.max_decoder_bytes = 100 * 50 * 3 * 2 - 1;
  EXPECT_EQ(error_of([&] { probe_image(dir.file("a.jpg"), limits); }).code(),
            ErrorCode::kResourceExhausted);
}

TEST(Decoder, TiffInHugePiecesIsSpooled) {
  const TempDir dir;
  const Rgb8 picture = testing::gradient(8192, 1024);  // 24 MiB
  for (const std::string options :
       {"tile,tile-width=8192,tile-height=1024,compression=deflate",
        "tile,tile-width=8192,tile-height=1024,compression=deflate,bigtiff"}) {
    ASSERT_TRUE(testing::save(picture, dir.file("a.tif"), ".tif[" + options + "]"));
    const ImageInfo info = probe_image(dir.file("a.tif"), {});
    EXPECT_TRUE(info.spooled);
    EXPECT_EQ(info.decoder_bytes, 3 * 8192 * 1024 * 3);
  }
  for (const std::string options : {"tile", "rows-per-strip=1024", "tile,bigtiff"}) {
    if (!testing::save(picture, dir.file("a.tif"), ".tif[" + options + "]")) continue;
    EXPECT_FALSE(probe_image(dir.file("a.tif"), {}).spooled) << options;
  }
}

class MutatedFiles : public ::testing::TestWithParam<std::string> {};

TEST_P(MutatedFiles, GiveTilesOrAnErrorAndPrintNothing) {
  const TempDir dir;
  if (!testing::save(testing::gradient(40, 30), dir.file("a"), GetParam())) GTEST_SKIP();
  const std::string good = testing::read_file(dir.file("a"));
  TileGrid grid;
  grid.tile_size = 16;
  grid.n_cols = 2;
  grid.n_rows = 2;
  ImageLimits limits;
  limits.max_pixels = 1'000'000;
  limits.max_decoder_bytes = 16 * kMiB;
  uint32_t state = 7;
  const auto random = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
  ::testing::internal::CaptureStderr();
  for (int round = 0; round < 150; ++round) {
    std::string bytes = good;
    for (uint32_t i = random() % 4; i < 5; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const std::string path = dir.write("a", bytes);
    try {
      TileReader reader(path, grid, limits);
      int n_tiles = 0;
      while (reader.next().has_value()) ++n_tiles;
      EXPECT_EQ(n_tiles, grid.n_tiles());
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::kInternal) << error.what();
    }
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

INSTANTIATE_TEST_SUITE_P(Formats, MutatedFiles,
                         ::testing::Values(".jpg", ".jpg[interlace]", ".png", ".png[interlace]",
                                           ".webp", ".gif", ".tif", ".tif[tile,compression=jpeg]"));

}  // namespace
}  // namespace plateau::media

#include "media/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "media/fixtures.h"
#include "media/reference_resize.h"

namespace plateau::media {
namespace {

using testing::card;
using testing::error_of;
using testing::gradient;
using ::testing::HasSubstr;
using testing::noise;
using ::testing::Not;
using testing::TempDir;

TileGrid grid_of(int tile_size, int n_cols, int n_rows, bool thumbnail = false) {
  TileGrid grid;
  grid.tile_size = tile_size;
  grid.n_cols = n_cols;
  grid.n_rows = n_rows;
  grid.thumbnail = thumbnail;
  return grid;
}

void read_all(const std::string& path, const TileGrid& grid) {
  TileReader reader(path, grid, {});
  while (reader.next().has_value()) {
  }
}

TEST(TileReader, TilesAtNativeScaleAreTheSourcePixels) {
  const TempDir dir;
  const Rgb8 picture = noise(96, 64);
  ASSERT_TRUE(testing::save(picture, dir.file("a.png"), ".png"));
  for (const int tile : {8, 16, 32}) {
    const TileGrid grid = grid_of(tile, 96 / tile, 64 / tile);
    EXPECT_EQ(testing::read_grid(dir.file("a.png"), grid).pixels, picture.pixels) << tile;
  }
}

TEST(TileReader, OneRowOfTilesAtNativeScaleIsTheSource) {
  const TempDir dir;
  const Rgb8 picture = noise(320, 32);
  ASSERT_TRUE(testing::save(picture, dir.file("a.png"), ".png"));
  EXPECT_EQ(testing::read_grid(dir.file("a.png"), grid_of(32, 10, 1)).pixels, picture.pixels);
}

TEST(TileReader, ResizesAsTheReferenceDoes) {
  const TempDir dir;
  for (const auto& [width, height] : {std::pair(27, 257), {3, 40}, {13, 13}, {200, 150}, {1, 1}}) {
    const Rgb8 picture = noise(width, height);
    ASSERT_TRUE(testing::save(picture, dir.file("a.png"), ".png"));
    const TileGrid grid = grid_of(28, 3, 2);
    const Rgb8 expected = testing::reference_resize(picture, 84, 56);
    const Rgb8 out = testing::read_grid(dir.file("a.png"), grid);
    EXPECT_LE(testing::max_difference(out, expected), 1) << width << " x " << height;
  }
}

TEST(TileReader, DegenerateSizesAreCutAsPlanned) {
  const TempDir dir;
  for (const auto& [width, height] :
       {std::pair(1, 1), {2, 2}, {27, 257}, {3, 40}, {13, 13}, {1, 5000}, {6000, 29}}) {
    ASSERT_TRUE(testing::save(gradient(width, height), dir.file("a.jpg"), ".jpg"));
    const ImageInfo info = probe_image(dir.file("a.jpg"), {});
    EXPECT_EQ(info.width, width);
    EXPECT_EQ(info.height, height);
    const TileGrid grid = plan_tiles(info.width, info.height, {});
    testing::read_grid(dir.file("a.jpg"), grid);  // counts the tiles
  }
}

TEST(TileReader, ThumbnailIsTheWholePictureAndComesLast) {
  const TempDir dir;
  const Rgb8 picture = noise(100, 70);
  ASSERT_TRUE(testing::save(picture, dir.file("a.png"), ".png"));
  for (const int tile : {16, 70, 100}) {
    TileReader reader(dir.file("a.png"), grid_of(tile, 2, 1, /*thumbnail=*/true), {});
    EXPECT_TRUE(reader.next().has_value());
    EXPECT_TRUE(reader.next().has_value());
    const std::optional<Rgb8> thumbnail = reader.next();
    ASSERT_TRUE(thumbnail.has_value());
    EXPECT_EQ(thumbnail->width, tile);
    EXPECT_LE(testing::max_difference(*thumbnail, testing::reference_resize(picture, tile, tile)),
              1);
    EXPECT_FALSE(reader.next().has_value());
    EXPECT_FALSE(reader.next().has_value());
  }
}

TEST(TileReader, BandTooWideForMemoryGivesTheSameTiles) {
  const TempDir dir;
  constexpr int kTile = 256;
  constexpr int kCols = 180;  // 180 * 256 * 256 * 3 bytes = 35 MB: above kMaxBandBytes
  const Rgb8 picture = gradient(kTile * kCols, kTile);
  ASSERT_TRUE(testing::save(picture, dir.file("a.png"), ".png[compression=1]"));
  EXPECT_EQ(testing::read_grid(dir.file("a.png"), grid_of(kTile, kCols, 1)).pixels, picture.pixels);
}

TEST(TileReader, MovesWhileReading) {
  const TempDir dir;
  const Rgb8 picture = noise(64, 32);
  ASSERT_TRUE(testing::save(picture, dir.file("a.png"), ".png"));
  TileReader first(dir.file("a.png"), grid_of(32, 2, 1), {});
  EXPECT_TRUE(first.next().has_value());
  TileReader second = std::move(first);
  EXPECT_TRUE(second.next().has_value());
  EXPECT_FALSE(second.next().has_value());
}

TEST(TileReader, RefusesAbsurdGrids) {
  const TempDir dir;
  ASSERT_TRUE(testing::save(card(), dir.file("a.png"), ".png"));
  for (const TileGrid& grid : {grid_of(0, 1, 1), grid_of(32, 0, 1), grid_of(32, 1, -1),
                               grid_of(100'000, 1, 1), grid_of(8192, 2'000'000'000, 1)}) {
    EXPECT_EQ(error_of([&] { TileReader(dir.file("a.png"), grid, {}); }).code(),
              ErrorCode::kInvalidArgument);
  }
}

TEST(ImageFile, AnyNameIsOnlyAName) {
  const TempDir dir;
  const Rgb8 picture = card();
  for (const std::string name :
       {"x.jpg[shrink=2]", "with space.png", "-", "-p", "[1]", "a:b,c=d", "%s.v", "x.png[page=3"}) {
    ASSERT_TRUE(testing::save(picture, dir.file(name), ".png"));
    EXPECT_EQ(testing::read_square(dir.file(name), testing::kCardSize).pixels, picture.pixels)
        << name;
  }
  // The name without the option exists, the one with it does not.
  ASSERT_TRUE(testing::save(picture, dir.file("y.png"), ".png"));
  EXPECT_EQ(error_of([&] { probe_image(dir.file("y.png[page=0]"), {}); }).code(),
            ErrorCode::kNotFound);
}

TEST(ImageFile, RelativeDashIsAFileToo) {
  const TempDir dir;
  const std::filesystem::path before = std::filesystem::current_path();
  ASSERT_TRUE(testing::save(card(), dir.file("-"), ".png"));
  std::filesystem::current_path(dir.path());
  EXPECT_EQ(probe_image("-", {}).width, testing::kCardSize);
  std::filesystem::current_path(before);
}

TEST(ImageFile, WhatIsNoPictureIsRefusedByKind) {
  const TempDir dir;
  const auto code = [&](const std::string& path) {
    return error_of([&] { probe_image(path, {}); }).code();
  };
  EXPECT_EQ(code(dir.file("missing.png")), ErrorCode::kNotFound);
  EXPECT_EQ(code(dir.file("missing/x.png")), ErrorCode::kNotFound);
  EXPECT_EQ(code(""), ErrorCode::kNotFound);
  EXPECT_EQ(code(std::string("a\0b", 3)), ErrorCode::kNotFound);
  EXPECT_EQ(code(dir.path()), ErrorCode::kUnsupported);
  EXPECT_EQ(code("/dev/null"), ErrorCode::kUnsupported);
  ASSERT_EQ(::mkfifo(dir.file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(code(dir.file("pipe")), ErrorCode::kUnsupported);  // and does not wait for a writer
  EXPECT_EQ(code(dir.write("empty.png", "")), ErrorCode::kCorrupt);
  EXPECT_EQ(code(dir.write("text.png", "just text")), ErrorCode::kUnsupported);
  EXPECT_EQ(code(dir.write("one.png", "\x89")), ErrorCode::kUnsupported);
  const std::string locked = dir.write("locked.png", "\x89PNG");
  ASSERT_EQ(::chmod(locked.c_str(), 0), 0);
  if (::geteuid() != 0) {
    EXPECT_EQ(code(locked), ErrorCode::kNotFound);
  }
}

TEST(ImageFile, ErrorsNameTheFile) {
  const TempDir dir;
  const Error error = error_of([&] { probe_image(dir.write("odd name.png", "?"), {}); });
  EXPECT_THAT(error.what(), HasSubstr(dir.file("odd name.png")));
}

struct Truncation {
  const char* suffix_options;
  const char* name;
};

class TruncatedFiles : public ::testing::TestWithParam<Truncation> {};

TEST_P(TruncatedFiles, AreCorruptAndPrintNothing) {
  const TempDir dir;
  if (!testing::save(noise(300, 300), dir.file("whole"), GetParam().suffix_options)) {
    GTEST_SKIP() << "this libvips cannot write " << GetParam().name;
  }
  const std::string whole = testing::read_file(dir.file("whole"));
  ::testing::internal::CaptureStderr();
  for (const size_t percent : {3, 30, 60, 90}) {
    const std::string path = dir.write("cut", whole.substr(0, whole.size() * percent / 100));
    const Error error = error_of([&] { read_all(path, grid_of(100, 3, 3, true)); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << percent << " %: " << error.what();
    EXPECT_THAT(error.what(), Not(HasSubstr("()"))) << "the library's reason is missing";
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

INSTANTIATE_TEST_SUITE_P(
    Formats, TruncatedFiles,
    ::testing::Values(Truncation{".jpg[Q=90]", "jpeg"},
                      Truncation{".jpg[Q=90,interlace]", "progressive"}, Truncation{".png", "png"},
                      Truncation{".png[interlace]", "adam7"}, Truncation{".webp[Q=80]", "webp"},
                      Truncation{".webp[lossless]", "webp_lossless"}, Truncation{".gif", "gif"},
                      Truncation{".tif", "tiff"}, Truncation{".tif[compression=lzw]", "tiff_lzw"},
                      Truncation{".tif[tile,compression=jpeg]", "tiff_tiled"},
                      Truncation{".avif", "avif"}),
    [](const auto& param_info) { return param_info.param.name; });

// libjpeg itself goes on and fills in grey when the data stop before their last block.
TEST(DamagedFile, JpegWithDataMissingInTheMiddleIsCorruptNotGrey) {
  const TempDir dir;
  for (const bool progressive : {false, true}) {
    testing::write_jpeg(noise(300, 300), dir.file("a.jpg"), {.progressive = progressive});
    std::string bytes = testing::read_file(dir.file("a.jpg"));
    bytes.erase(bytes.size() / 2, bytes.size() / 5);
    dir.write("a.jpg", bytes);
    const Error error = error_of([&] { read_all(dir.file("a.jpg"), grid_of(100, 3, 3)); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr("Corrupt JPEG data"));
  }
}

TEST(DamagedFile, PaddingInAJpegIsHarmless) {
  const TempDir dir;
  testing::write_jpeg(card(), dir.file("a.jpg"));
  std::string bytes = testing::read_file(dir.file("a.jpg"));
  bytes.insert(bytes.size() - 2, std::string(64, '\0'));
  dir.write("padded.jpg", bytes);
  dir.write("trailer.jpg", testing::read_file(dir.file("a.jpg")) + std::string(999, 'x'));
  const Rgb8 expected = testing::read_square(dir.file("a.jpg"), 64);
  EXPECT_EQ(testing::read_square(dir.file("padded.jpg"), 64).pixels, expected.pixels);
  EXPECT_EQ(testing::read_square(dir.file("trailer.jpg"), 64).pixels, expected.pixels);
}

TEST(DamagedFile, ErrorStays) {
  const TempDir dir;
  ASSERT_TRUE(testing::save(noise(300, 300), dir.file("a.png"), ".png"));
  const std::string bytes = testing::read_file(dir.file("a.png"));
  dir.write("a.png", bytes.substr(0, bytes.size() / 2));
  TileReader reader(dir.file("a.png"), grid_of(100, 3, 3), {});
  const auto drain = [&] {
    while (reader.next().has_value()) {
    }
  };
  const Error first = error_of(drain);
  EXPECT_STREQ(error_of(drain).what(), first.what());
}

TEST(TileReader, ReadersInSeveralThreadsKeepTheirOwnErrors) {
  const TempDir dir;
  const Rgb8 picture = noise(256, 256);
  ASSERT_TRUE(testing::save(picture, dir.file("good.png"), ".png"));
  testing::write_jpeg(picture, dir.file("bad.jpg"));
  const std::string bytes = testing::read_file(dir.file("bad.jpg"));
  dir.write("bad.jpg", bytes.substr(0, bytes.size() * 9 / 10));
  std::thread bad([&] {
    for (int i = 0; i < 20; ++i) {
      const Error error = error_of([&] { read_all(dir.file("bad.jpg"), grid_of(64, 4, 4)); });
      EXPECT_THAT(error.what(), HasSubstr("VipsJpeg"));
    }
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(testing::read_grid(dir.file("good.png"), grid_of(64, 4, 4)).pixels, picture.pixels);
  }
  bad.join();
}

}  // namespace
}  // namespace plateau::media

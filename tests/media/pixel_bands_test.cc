#include "media/pixel_bands.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "media/fixtures.h"
#include "media/reference_resize.h"

namespace plateau::media {
namespace {

using testing::error_of;
using testing::noise;
using testing::TempDir;

/// All rows, in bands of n_rows.
Rgb8 read_bands(PixelBands& bands, int n_rows) {
  Rgb8 picture = {bands.width(), bands.height(), {}};
  for (int y = 0; y < bands.height(); y += n_rows) {
    const auto band = bands.next(std::min(n_rows, bands.height() - y));
    picture.pixels.insert(picture.pixels.end(), band.begin(), band.end());
  }
  return picture;
}

Rgb8 read_file_in_bands(const std::string& path, int width, int height, int n_rows) {
  BandReader reader(path, width, height, {});
  return read_bands(reader, n_rows);
}

TEST(BandReader, AtNativeScaleBandsAreTheSourcePixels) {
  const TempDir dir;
  const Rgb8 picture = noise(84, 140);
  ASSERT_TRUE(testing::save(picture, dir.file("a.png"), ".png"));
  for (const int n_rows : {1, 28, 112, 140}) {
    EXPECT_EQ(read_file_in_bands(dir.file("a.png"), 84, 140, n_rows).pixels, picture.pixels)
        << n_rows;
  }
}

// The same resampler as for tiles, whatever the band.
TEST(BandReader, ResizesAsTilesAre) {
  const TempDir dir;
  for (const auto& [width, height] : {std::pair(27, 257), {1, 1}, {5000, 1}, {300, 200}}) {
    const Rgb8 picture = noise(width, height);
    ASSERT_TRUE(testing::save(picture, dir.file("a.png"), ".png"));
    const Rgb8 out = read_file_in_bands(dir.file("a.png"), 84, 56, 28);
    EXPECT_EQ(out.pixels, read_file_in_bands(dir.file("a.png"), 84, 56, 17).pixels);
    TileGrid grid;
    grid.tile_size = 28;
    grid.n_cols = 3;
    grid.n_rows = 2;
    EXPECT_EQ(out.pixels, testing::read_grid(dir.file("a.png"), grid).pixels);
    EXPECT_LE(testing::max_difference(out, testing::reference_resize(picture, 84, 56)), 1);
  }
}

TEST(BandReader, TurnsAsTheTagSays) {
  const TempDir dir;
  const Rgb8 picture = noise(56, 28);
  testing::write_png(picture, dir.file("a.png"), {.orientation = 6});
  const Rgb8 out = read_file_in_bands(dir.file("a.png"), 28, 56, 28);
  for (int y = 0; y < 56; ++y) {  // a quarter turn clockwise
    for (int x = 0; x < 28; ++x) {
      for (int channel = 0; channel < 3; ++channel) {
        ASSERT_EQ(out.pixels[static_cast<size_t>((y * 28 + x) * 3 + channel)],
                  picture.pixels[static_cast<size_t>(((27 - x) * 56 + y) * 3 + channel)]);
      }
    }
  }
}

TEST(BandReader, ATruncatedFileIsCorruptAndStaysSo) {
  const TempDir dir;
  ASSERT_TRUE(testing::save(noise(280, 560), dir.file("a.png"), ".png"));
  const std::string bytes = testing::read_file(dir.file("a.png"));
  const std::string path = dir.write("b.png", bytes.substr(0, bytes.size() * 3 / 4));
  BandReader reader(path, 280, 560, {});
  const Error first = error_of([&] { read_bands(reader, 112); });
  EXPECT_EQ(first.code(), ErrorCode::kCorrupt);
  EXPECT_STREQ(error_of([&] { reader.next(1); }).what(), first.what());
}

TEST(BandReader, RefusesAnAbsurdSizeAndAMissingFile) {
  const TempDir dir;
  ASSERT_TRUE(testing::save(noise(8, 8), dir.file("a.png"), ".png"));
  for (const auto& [width, height] : {std::pair(0, 28), {28, -1}, {500'000, 28}}) {
    EXPECT_EQ(error_of([&] { BandReader(dir.file("a.png"), width, height, {}); }).code(),
              ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(error_of([&] { BandReader(dir.file("none.png"), 28, 28, {}); }).code(),
            ErrorCode::kNotFound);
}

TEST(FrameBands, AreTheFrame) {
  const Rgb8 frame = noise(28, 84);
  for (const int n_rows : {1, 28, 84}) {
    FrameBands bands(frame);
    EXPECT_EQ(read_bands(bands, n_rows).pixels, frame.pixels);
    EXPECT_EQ(error_of([&] { bands.next(1); }).code(), ErrorCode::kInternal);
  }
}

}  // namespace
}  // namespace plateau::media

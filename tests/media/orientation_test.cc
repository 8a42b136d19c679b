#include <gtest/gtest.h>

#include "media/fixtures.h"
#include "media/image.h"

namespace plateau::media {
namespace {

using testing::TempDir;

// What a viewer does with a stored picture, from the EXIF standard's table: where the stored row 0
// and column 0 belong. 1 top/left, 2 top/right, 3 bottom/right, 4 bottom/left, 5 left/top,
// 6 right/top, 7 right/bottom, 8 left/bottom.
Rgb8 upright(const Rgb8& stored, int orientation) {
  const bool swapped = orientation >= 5;
  const bool row_from_end = orientation == 3 || orientation == 4 || orientation == 6 ||
                            orientation == 7;  // stored row 0 at the bottom or the right
  const bool col_from_end = orientation == 2 || orientation == 3 || orientation == 7 ||
                            orientation == 8;  // stored column 0 at the right or the bottom
  Rgb8 out{swapped ? stored.height : stored.width, swapped ? stored.width : stored.height, {}};
  out.pixels.resize(stored.pixels.size());
  for (int row = 0; row < stored.height; ++row) {
    for (int col = 0; col < stored.width; ++col) {
      const int r = row_from_end ? stored.height - 1 - row : row;
      const int c = col_from_end ? stored.width - 1 - col : col;
      const int x = swapped ? r : c;
      const int y = swapped ? c : r;
      for (int k = 0; k < 3; ++k) {
        out.pixels[static_cast<size_t>((y * out.width + x) * 3 + k)] =
            stored.pixels[static_cast<size_t>((row * stored.width + col) * 3 + k)];
      }
    }
  }
  return out;
}

// The file at its own size, whatever its shape: one tile per pixel column and row of 8.
Rgb8 read_at_own_size(const std::string& path) {
  const ImageInfo info = probe_image(path, {});
  TileGrid grid;
  grid.tile_size = 8;
  grid.n_cols = static_cast<int>(info.width / 8);
  grid.n_rows = static_cast<int>(info.height / 8);
  return testing::read_grid(path, grid);
}

constexpr int kWidth = 48;
constexpr int kHeight = 400;  // more than one band of rows when turned

class Orientations : public ::testing::TestWithParam<int> {};

TEST_P(Orientations, LosslessPicturesAreUprightToThePixel) {
  const TempDir dir;
  const Rgb8 stored = testing::noise(kWidth, kHeight);
  for (const std::string suffix : {".tif", ".png"}) {
    const std::string path = dir.file("a" + suffix);
    if (suffix == ".png") {
      testing::write_png(stored, path, {.orientation = GetParam()});
    } else {
      ASSERT_TRUE(testing::save(stored, path, suffix, {.orientation = GetParam()}));
    }
    const ImageInfo info = probe_image(path, {});
    EXPECT_EQ(info.width, GetParam() >= 5 ? kHeight : kWidth) << suffix;
    EXPECT_EQ(info.height, GetParam() >= 5 ? kWidth : kHeight) << suffix;
    EXPECT_EQ(info.spooled, GetParam() != 1) << suffix;
    EXPECT_EQ(testing::max_difference(read_at_own_size(path), upright(stored, GetParam())), 0)
        << suffix;
  }
}

TEST_P(Orientations, JpegsAreUprightToThePixelOfTheSameFileWithoutTag) {
  const TempDir dir;
  for (const bool progressive : {false, true}) {
    testing::write_jpeg(testing::gradient(kWidth, kHeight), dir.file("plain.jpg"),
                        {.progressive = progressive});
    const std::string plain = testing::read_file(dir.file("plain.jpg"));
    dir.write("turned.jpg", testing::with_app1(plain, testing::exif(GetParam())));
    const Rgb8 stored = read_at_own_size(dir.file("plain.jpg"));
    const Rgb8 turned = read_at_own_size(dir.file("turned.jpg"));
    EXPECT_EQ(turned.width, GetParam() >= 5 ? kHeight : kWidth);
    EXPECT_EQ(testing::max_difference(turned, upright(stored, GetParam())), 0)
        << "progressive " << progressive;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Orientations, ::testing::Range(1, 9));

TEST(Orientation, RedTopEdgeIsOnTop) {
  const TempDir dir;
  // Stored as a camera held upright stores it (6): the scene's top edge is the stored left column.
  Rgb8 stored = testing::gradient(32, 32);
  for (int y = 0; y < 32; ++y) {
    for (int c = 0; c < 3; ++c) {
      stored.pixels[static_cast<size_t>(y * 32 * 3 + c)] = c == 0 ? 255 : 0;
    }
  }
  ASSERT_TRUE(testing::save(stored, dir.file("a.tif"), ".tif", {.orientation = 6}));
  const Rgb8 out = testing::read_square(dir.file("a.tif"), 32);
  for (int x = 0; x < 32; ++x) {
    EXPECT_EQ(out.pixels[static_cast<size_t>(x * 3)], 255);
    EXPECT_EQ(out.pixels[static_cast<size_t>(x * 3 + 1)], 0);
  }
}

TEST(Orientation, MalformedExifIsIgnored) {
  const TempDir dir;
  testing::write_jpeg(testing::gradient(64, 64), dir.file("plain.jpg"));
  const std::string plain = testing::read_file(dir.file("plain.jpg"));
  const Rgb8 expected = testing::read_square(dir.file("plain.jpg"), 64);
  const std::string good = testing::exif(6);
  for (const std::string& app1 :
       {testing::exif(0), testing::exif(9), testing::exif(255), good.substr(0, 8),
        good.substr(0, 20), std::string("Exif\0\0", 6) + std::string(500, '\xff'),
        std::string("Exif\0\0II*\0\xff\xff\xff\x7f", 14), std::string("Exif")}) {
    dir.write("odd.jpg", testing::with_app1(plain, app1));
    ::testing::internal::CaptureStderr();
    EXPECT_FALSE(probe_image(dir.file("odd.jpg"), {}).spooled);
    EXPECT_EQ(testing::read_square(dir.file("odd.jpg"), 64).pixels, expected.pixels);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  }
}

}  // namespace
}  // namespace plateau::media

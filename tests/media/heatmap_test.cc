#include "media/heatmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "media/fixtures.h"

namespace plateau::media {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::TempDir;

constexpr int kLegendHeight = 32;

struct Pixel {
  int r, g, b;
  bool operator==(const Pixel&) const = default;
  int sum() const { return r + g + b; }
  int saturation() const { return std::max({r, g, b}) - std::min({r, g, b}); }
};

Pixel pixel(const Rgb8& picture, int x, int y) {
  const uint8_t* p = &picture.pixels[(static_cast<size_t>(y) * static_cast<size_t>(picture.width) +
                                      static_cast<size_t>(x)) *
                                     3];
  return {p[0], p[1], p[2]};
}

Rgb8 plain(int width, int height) {
  Rgb8 picture{width, height, {}};
  for (int i = 0; i < width * height; ++i)
    picture.pixels.insert(picture.pixels.end(), {200, 90, 40});
  return picture;
}

/// The PNG at its own size, by way of tiles of one pixel row each.
Rgb8 read_png(const std::string& path) {
  const ImageInfo info = probe_image(path, {});
  EXPECT_EQ(info.format, "png");
  TileGrid grid;
  grid.tile_size = 1;
  grid.n_cols = static_cast<int>(info.width);
  grid.n_rows = static_cast<int>(info.height);
  return testing::read_grid(path, grid);
}

class HeatmapTest : public ::testing::Test {
 protected:
  Rgb8 draw(const Rgb8& picture, const Heatmap& heatmap, const testing::SaveOptions& options = {}) {
    EXPECT_TRUE(testing::save(picture, dir_.file("in.png"), ".png", options));
    write_heatmap(dir_.file("in.png"), dir_.file("out.png"), heatmap, {});
    return read_png(dir_.file("out.png"));
  }

  TempDir dir_;
};

TEST_F(HeatmapTest, IsThePictureOverALegend) {
  const Rgb8 wide = draw(plain(400, 100), {2, 1, {1, 0}});
  EXPECT_EQ(wide.width, 400);
  EXPECT_EQ(wide.height, 100 + kLegendHeight);
  const Rgb8 narrow = draw(plain(80, 50), {2, 1, {1, 0}});  // no room for a legend
  EXPECT_EQ(narrow.width, 80);
  EXPECT_EQ(narrow.height, 50);
}

TEST_F(HeatmapTest, IsAtMost2048PixelsASideInThePicturesShape) {
  for (const auto& [width, height] :
       {std::pair(5000, 1000), {900, 4000}, {2100, 2100}, {4096, 1}}) {
    testing::write_blank_png(width, height, dir_.file("in.png"));
    write_heatmap(dir_.file("in.png"), dir_.file("out.png"), {1, 1, {1}}, {});
    const ImageInfo info = probe_image(dir_.file("out.png"), {});
    EXPECT_LE(std::max(info.width, info.height), 2048);
    EXPECT_GE(std::max(info.width, info.height), 2048 - kLegendHeight);
    const double picture_height =
        static_cast<double>(info.height) - (info.width >= 360 ? kLegendHeight : 0);
    EXPECT_NEAR(picture_height, std::max(1.0, static_cast<double>(info.width) * height / width), 2);
  }
}

TEST_F(HeatmapTest, KeptCellsKeepTheirColourAndDroppedOnesAreDarkAndGrey) {
  const Rgb8 out = draw(plain(80, 40), {2, 1, {1, 0}});
  const Pixel original = {200, 90, 40};
  for (int y = 5; y < 35; ++y) {
    for (int x = 5; x < 35; ++x) {
      ASSERT_EQ(pixel(out, x, y), original) << x << ", " << y;
      const Pixel dropped = pixel(out, 40 + x, y);
      ASSERT_NEAR(dropped.sum(), original.sum() / 4, 25);
      ASSERT_LE(dropped.saturation(), 1);
    }
  }
  // The line around what was kept is warm; dropped cells have none.
  const Pixel line = pixel(out, 0, 20);
  EXPECT_NE(line, original);
  EXPECT_GT(line.r, line.b + 100);
  EXPECT_EQ(pixel(out, 79, 20), pixel(out, 60, 20));
}

TEST_F(HeatmapTest, BrightnessAndColourRiseWithTheShare) {
  const Rgb8 out = draw(plain(100, 20), {5, 1, {0, 0.1f, 0.3f, 0.6f, 1}});
  for (int cell = 1; cell < 5; ++cell) {
    const Pixel less = pixel(out, cell * 20 - 10, 10);
    const Pixel more = pixel(out, cell * 20 + 10, 10);
    EXPECT_GT(more.sum(), less.sum() + 20) << cell;
    EXPECT_GT(more.saturation(), less.saturation() + 5) << cell;
  }
}

TEST_F(HeatmapTest, CellsLieInReadingOrder) {
  const Rgb8 out = draw(plain(60, 60), {3, 2, {0, 0, 0, 0, 1, 0}});
  for (int row = 0; row < 2; ++row) {
    for (int col = 0; col < 3; ++col) {
      const bool is_kept = pixel(out, col * 20 + 10, row * 30 + 15) == Pixel{200, 90, 40};
      EXPECT_EQ(is_kept, row == 1 && col == 1);
    }
  }
}

TEST_F(HeatmapTest, ThePictureIsUpright) {
  testing::SaveOptions turned;
  turned.orientation = 6;
  ASSERT_TRUE(testing::save(plain(80, 40), dir_.file("in.jpg"), ".jpg", turned));
  write_heatmap(dir_.file("in.jpg"), dir_.file("out.png"), {1, 2, {1, 0}}, {});
  const Rgb8 out = read_png(dir_.file("out.png"));
  EXPECT_EQ(out.width, 40);
  EXPECT_EQ(out.height, 80);
  EXPECT_GT(pixel(out, 20, 20).sum(), 300);
  EXPECT_LT(pixel(out, 20, 60).sum(), 100);
}

TEST_F(HeatmapTest, TakesMoreCellsThanPixels) {
  Heatmap heatmap{200, 100, std::vector<float>(200 * 100, 1.0f)};
  EXPECT_EQ(draw(plain(50, 30), heatmap).pixels, plain(50, 30).pixels);
}

TEST_F(HeatmapTest, TakesSharesThatRoundingMovedOutOfRange) {
  EXPECT_EQ(pixel(draw(plain(40, 20), {2, 1, {1.0001f, -0.0001f}}), 10, 10), (Pixel{200, 90, 40}));
}

TEST_F(HeatmapTest, RefusesGridsThatDoNotFit) {
  ASSERT_TRUE(testing::save(plain(40, 40), dir_.file("in.png"), ".png"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Heatmap& heatmap :
       {Heatmap{}, Heatmap{2, 2, {1, 1, 1}}, Heatmap{0, 3, {}}, Heatmap{-1, -1, {1}},
        Heatmap{1, 1, {1, 1}}, Heatmap{1, 1, {nan}}}) {
    const Error error =
        error_of([&] { write_heatmap(dir_.file("in.png"), dir_.file("out.png"), heatmap, {}); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("[heatmap]"));
  }
}

TEST_F(HeatmapTest, NamesFilesThatCannotBeReadOrWritten) {
  ASSERT_TRUE(testing::save(plain(40, 40), dir_.file("in.png"), ".png"));
  const Heatmap heatmap{1, 1, {1}};
  const Error unreadable =
      error_of([&] { write_heatmap(dir_.file("nothing.png"), dir_.file("out.png"), heatmap, {}); });
  EXPECT_EQ(unreadable.code(), ErrorCode::kNotFound);
  const Error unwritable = error_of(
      [&] { write_heatmap(dir_.file("in.png"), dir_.file("missing/out.png"), heatmap, {}); });
  EXPECT_EQ(unwritable.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(unwritable.what(), HasSubstr("missing/out.png"));
}

}  // namespace
}  // namespace plateau::media

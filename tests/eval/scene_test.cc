#include "eval/scene.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "eval/picture_writer.h"
#include "eval_test_support.h"

namespace plateau::eval {
namespace {

SceneOptions small_scene(uint64_t seed) {
  SceneOptions options;
  options.width = 500;
  options.height = 340;
  options.seed = seed;
  return options;
}

TEST(Scene, SameSeedSameBytes) {
  const TempDir dir;
  for (const std::string extension : {".png", ".jpg"}) {
    const Scene first = write_scene(small_scene(7), dir.file("a" + extension));
    write_scene(small_scene(7), dir.file("b" + extension));
    write_scene(small_scene(8), dir.file("c" + extension));
    const std::string bytes = read_file(dir.file("a" + extension));
    EXPECT_EQ(bytes, read_file(dir.file("b" + extension)));
    EXPECT_NE(bytes, read_file(dir.file("c" + extension)));
    EXPECT_EQ(first.drawings.size(), 8);
  }
}

TEST(Scene, NeedlesLieInTheirCells) {
  const TempDir dir;
  const Scene scene = write_scene(small_scene(3), dir.file("a.png"));
  EXPECT_EQ(scene.n_cols, 5);
  EXPECT_EQ(scene.n_rows, 3);
  for (const Drawing& needle : scene.drawings) {
    // In tile pixels, with one pixel for rounding outwards.
    const double x_scale = 5 * 112 / 500.0;
    const double y_scale = 3 * 112 / 340.0;
    EXPECT_GE(static_cast<double>(needle.x + 1) * x_scale, needle.col * 112);
    EXPECT_GE(static_cast<double>(needle.y + 1) * y_scale, needle.row * 112);
    EXPECT_LE(static_cast<double>(needle.x + needle.w - 1) * x_scale, needle.col * 112 + 112);
    EXPECT_LE(static_cast<double>(needle.y + needle.h - 1) * y_scale, needle.row * 112 + 112);
  }
}

TEST(Scene, ThePlacesDoNotDependOnTheBackground) {
  const TempDir dir;
  write_scene(small_scene(1), dir.file("photo.jpg"));
  SceneOptions options = small_scene(2);
  const Scene plain = write_scene(options, dir.file("plain.png"));
  options.background = dir.file("photo.jpg");
  const Scene on_photo = write_scene(options, dir.file("on_photo.png"));
  EXPECT_NE(read_file(dir.file("plain.png")), read_file(dir.file("on_photo.png")));
  for (size_t i = 0; i < plain.drawings.size(); ++i) {
    EXPECT_EQ(plain.drawings[i].x, on_photo.drawings[i].x);
    EXPECT_EQ(plain.drawings[i].digit, on_photo.drawings[i].digit);
  }
}

TEST(Scene, APhotographCoversAnyShape) {
  const TempDir dir;
  write_scene(small_scene(1), dir.file("photo[1].png"));
  for (const auto& [width, height] : {std::pair{112, 1111}, {1111, 112}, {777, 333}}) {
    SceneOptions options;
    options.width = width;
    options.height = height;
    options.n_objects = 1;
    options.background = dir.file("photo[1].png");
    EXPECT_EQ(write_scene(options, dir.file("out.png")).width, width);
  }
}

TEST(Scene, SmallestPictureIsOneCell) {
  const TempDir dir;
  SceneOptions options;
  options.width = 56;
  options.height = 112;
  options.n_objects = 1;
  EXPECT_EQ(write_scene(options, dir.file("a.png")).drawings.size(), 1);
  options.width = 1;
  options.height = 1;
  EXPECT_EQ(code_of([&] { write_scene(options, dir.file("b.png")); }), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(dir.file("b.png")));
}

TEST(Scene, RefusesBadFiles) {
  const TempDir dir;
  SceneOptions options = small_scene(1);
  const auto code = [&](const std::string& name) {
    return code_of([&] { write_scene(options, dir.file(name)); });
  };
  EXPECT_EQ(code("a.gif"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code("nowhere/a.png"), ErrorCode::kNotFound);
  options.background = dir.file("missing.jpg");
  EXPECT_EQ(code("a.png"), ErrorCode::kNotFound);
  std::ofstream(dir.file("text.jpg")) << "not a picture";
  options.background = dir.file("text.jpg");
  EXPECT_EQ(code("a.png"), ErrorCode::kUnsupported);
  EXPECT_FALSE(std::filesystem::exists(dir.file("a.png")));
}

TEST(PictureWriter, RethrowsThePaintersErrorAndLeavesNoFile) {
  const TempDir dir;
  const PictureLayout layout{64, {0, 40, 80, 120}};
  const BandPainter painter = [](int index, RgbView band) {
    if (index == 2) throw Error(ErrorCode::kCancelled, "stop");
    for (int64_t y = 0; y < band.height; ++y) std::fill_n(band.row(y), band.width * 3, uint8_t{9});
  };
  EXPECT_EQ(code_of([&] { write_picture(dir.file("a.png"), layout, painter); }),
            ErrorCode::kCancelled);
  EXPECT_FALSE(std::filesystem::exists(dir.file("a.png")));
}

TEST(PictureWriter, RefusesAJpegThatIsTooLarge) {
  const TempDir dir;
  const PictureLayout layout{65501, {0, 1}};
  EXPECT_EQ(code_of([&] { write_picture(dir.file("a.jpg"), layout, {}); }),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace plateau::eval

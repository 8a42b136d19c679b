#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "media/reference_resize.h"
#include "media/video_fixtures.h"

namespace plateau::media {
namespace {

using test::FilmCanvas;
using test::FilmSpec;
using testing::max_difference;
using testing::mean_difference;
using testing::noise;
using testing::read_picture;
using testing::TempDir;

/// RGB without loss.
FilmSpec png_spec(int width, int height) {
  return {.container = "mov",
          .encoder = "png",
          .pixel_format = "rgb24",
          .width = width,
          .height = height};
}

/// A film of two frames, both `picture`.
std::string write_picture(const TempDir& dir, FilmSpec spec, const Rgb8& picture) {
  spec.width = picture.width;
  spec.height = picture.height;
  const std::string path = dir.file("film");
  test::write_film(path, spec, 2,
                   [&](int64_t, FilmCanvas& canvas) { canvas.pixels = picture.pixels; });
  return path;
}

Rgb8 turned(const Rgb8& in, int degrees) {
  Rgb8 out{in.width, in.height, in.pixels};
  if (degrees % 180 != 0) std::swap(out.width, out.height);
  for (int y = 0; y < in.height; ++y) {
    for (int x = 0; x < in.width; ++x) {
      int to_x = x;
      int to_y = y;
      if (degrees == 90) to_x = in.height - 1 - y, to_y = x;
      if (degrees == 180) to_x = in.width - 1 - x, to_y = in.height - 1 - y;
      if (degrees == 270) to_x = y, to_y = in.width - 1 - x;
      for (int c = 0; c < 3; ++c) {
        out.pixels[static_cast<size_t>((to_y * out.width + to_x) * 3 + c)] =
            in.pixels[static_cast<size_t>((y * in.width + x) * 3 + c)];
      }
    }
  }
  return out;
}

Rgb8 mirrored(const Rgb8& in) {
  Rgb8 out = in;
  for (int y = 0; y < in.height; ++y) {
    for (int x = 0; x < in.width; ++x) {
      for (int c = 0; c < 3; ++c) {
        out.pixels[static_cast<size_t>((y * in.width + in.width - 1 - x) * 3 + c)] =
            in.pixels[static_cast<size_t>((y * in.width + x) * 3 + c)];
      }
    }
  }
  return out;
}

TEST(VideoPixels, RgbWithoutLossIsExact) {
  const TempDir dir;
  for (const auto& [width, height] : {std::pair(64, 48), {17, 31}, {1, 1}, {3, 200}}) {
    const Rgb8 picture = noise(width, height);
    EXPECT_EQ(read_picture(write_picture(dir, png_spec(0, 0), picture)).pixels, picture.pixels)
        << width << " x " << height;
  }
}

TEST(VideoPixels, RotationTagsAreApplied) {
  const TempDir dir;
  const Rgb8 picture = noise(40, 24);
  for (const int degrees : {0, 90, 180, 270}) {
    for (const bool mirror : {false, true}) {
      FilmSpec spec = png_spec(0, 0);
      spec.rotation = degrees;
      spec.mirror = mirror;
      const std::string path = write_picture(dir, spec, picture);
      const Rgb8 expected = mirror ? mirrored(turned(picture, degrees)) : turned(picture, degrees);
      const VideoInfo info = probe_video(path, {});
      EXPECT_EQ(info.width, expected.width) << degrees;
      EXPECT_EQ(info.height, expected.height) << degrees;
      EXPECT_EQ(read_picture(path).pixels, expected.pixels) << degrees << mirror;
    }
  }
}

TEST(VideoPixels, AreResizedAsPicturesAre) {
  const TempDir dir;
  const Rgb8 picture = noise(90, 70);
  ASSERT_TRUE(testing::save(picture, dir.file("a.png"), ".png"));
  const std::string path = write_picture(dir, png_spec(0, 0), picture);
  for (const int size : {28, 70, 112}) {
    EXPECT_EQ(read_picture(path, {.width = size, .height = size}).pixels,
              testing::read_square(dir.file("a.png"), size).pixels);
  }
  EXPECT_LE(max_difference(read_picture(path, {.width = 33, .height = 100}),
                           testing::reference_resize(picture, 33, 100)),
            1);
}

TEST(VideoPixels, TurnsBeforeItResizes) {
  const TempDir dir;
  FilmSpec spec = png_spec(0, 0);
  spec.rotation = 90;
  const Rgb8 picture = noise(90, 70);
  const std::string path = write_picture(dir, spec, picture);
  EXPECT_LE(max_difference(read_picture(path, {.width = 30, .height = 50}),
                           testing::reference_resize(turned(picture, 90), 30, 50)),
            1);
}

TEST(VideoPixels, LongPixelsAreStretched) {
  const TempDir dir;
  struct Case {
    int num, den, rotation;
    int64_t width, height;
  };
  for (const Case& c : {Case{2, 1, 0, 120, 48},
                        {1, 2, 0, 60, 96},
                        {16, 15, 0, 64, 48},
                        {2, 1, 90, 48, 120},
                        {100, 1, 0, 60, 48}}) {
    FilmSpec spec{.container = c.num == 100 ? "matroska" : "mov", .rotation = c.rotation};
    spec.aspect_num = c.num;
    spec.aspect_den = c.den;
    const std::string path = testing::write_clock(dir, "film", spec, 2);
    const VideoInfo info = probe_video(path, {});
    EXPECT_EQ(info.width, c.width) << c.num << ":" << c.den;
    EXPECT_EQ(info.height, c.height) << c.num << ":" << c.den;
    EXPECT_EQ(info.notes.empty(), c.num != 100);
    const Rgb8 own = read_picture(path);
    EXPECT_EQ(own.width, c.width);
    EXPECT_EQ(own.height, c.height);
  }
}

struct Colours {
  const char* container;
  const char* encoder;
  const char* pixel_format;
  const char* matrix;
  bool full_range;
};

TEST(VideoPixels, MatrixAndRangeAreHonoured) {
  const TempDir dir;
  // Smooth, so that halved chroma can follow.
  const Rgb8 picture = testing::gradient(64, 64);
  for (const Colours& c : {Colours{"matroska", "ffv1", "yuv444p", "bt601", false},
                           {"matroska", "ffv1", "yuv444p", "bt709", false},
                           {"matroska", "ffv1", "yuv444p", "bt601", true},
                           {"matroska", "ffv1", "yuv444p", "bt709", true},
                           {"matroska", "ffv1", "yuv420p", "bt709", false},
                           {"matroska", "ffv1", "yuv420p", "bt601", true},
                           {"matroska", "ffv1", "yuv422p10le", "bt709", false},
                           {"matroska", "ffv1", "yuv420p10le", "bt601", true},
                           {"matroska", "ffv1", "yuv444p16le", "bt709", false},
                           {"matroska", "ffv1", "yuv444p", "", false},
                           {"avi", "mjpeg", "yuvj420p", "", true},
                           {"mp4", "mpeg4", "yuv420p", "", false}}) {
    FilmSpec spec{.container = c.container, .encoder = c.encoder, .pixel_format = c.pixel_format};
    spec.matrix = c.matrix;
    spec.full_range = c.full_range;
    const Rgb8 out = read_picture(write_picture(dir, spec, picture));
    const bool lossy = std::string(c.encoder) != "ffv1";
    EXPECT_LE(mean_difference(out, picture), lossy ? 2.5 : 1.2)
        << c.encoder << " " << c.pixel_format << " " << c.matrix << " " << c.full_range;
    EXPECT_LE(max_difference(out, picture), lossy ? 12 : 8)
        << c.encoder << " " << c.pixel_format << " " << c.matrix << " " << c.full_range;
  }
}

TEST(VideoPixels, UntaggedFilmsAreReadByTheirHeight) {
  const TempDir dir;
  for (const int height : {576, 720}) {
    for (const char* matrix : {"bt601", "bt709"}) {
      FilmSpec spec{.container = "matroska", .encoder = "ffv1", .pixel_format = "yuv444p"};
      spec.matrix = matrix;
      spec.tagged = false;
      const Rgb8 picture = testing::gradient(32, height);
      const double difference =
          mean_difference(read_picture(write_picture(dir, spec, picture)), picture);
      const bool right = (height >= 720) == (std::string(matrix) == "bt709");
      if (right) {
        EXPECT_LE(difference, 1.2);
      } else {
        EXPECT_GT(difference, 3);
      }
    }
  }
}

TEST(VideoPixels, AlphaIsPutOnWhiteAsForPictures) {
  const TempDir dir;
  const auto draw = [](int64_t, FilmCanvas& canvas) {
    for (int y = 0; y < canvas.height; ++y) {
      for (int x = 0; x < canvas.width; ++x) {
        const std::array<uint8_t, 4> pixel{200, static_cast<uint8_t>(x), 10,
                                           static_cast<uint8_t>(y * 4)};
        std::copy(pixel.begin(), pixel.end(), canvas.at(x, y));
      }
    }
  };
  const auto expect = [&](const Rgb8& out, int tolerance) {
    for (int y = 0; y < out.height; ++y) {
      for (int x = 0; x < out.width; ++x) {
        const std::array<int, 3> colour{200, x, 10};
        for (size_t c = 0; c < 3; ++c) {
          const int alpha = y * 4;
          const int expected = (colour[c] * alpha + 255 * (255 - alpha)) / 255;
          const int got = out.pixels[static_cast<size_t>(y * out.width + x) * 3 + c];
          ASSERT_NEAR(got, expected, tolerance) << x << ", " << y << ", " << c;
        }
      }
    }
  };
  FilmSpec spec{
      .container = "mov", .encoder = "png", .pixel_format = "rgba", .width = 64, .height = 60};
  test::write_film(dir.file("film"), spec, 2, draw);
  expect(read_picture(dir.file("film")), 0);
  spec.container = "matroska";
  spec.encoder = "ffv1";
  spec.pixel_format = "yuva444p";
  test::write_film(dir.file("film"), spec, 2, draw);
  expect(read_picture(dir.file("film")), 5);
}

}  // namespace
}  // namespace plateau::media

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "media/fixtures.h"
#include "media/image.h"

namespace plateau::media {
namespace {

using testing::card;
using testing::error_of;
using ::testing::HasSubstr;
using testing::kCardSize;
using testing::PngOptions;
using testing::TempDir;
using Space = testing::JpegOptions::Space;

// Room for lossy coding at quality 95, in the middle of a patch.
constexpr int kLossy = 6;

struct Colour {
  int r, g, b;
};

Colour patch(const Rgb8& picture, int index) {
  const int x = kCardSize / 4 + index % 2 * kCardSize / 2;
  const int y = kCardSize / 4 + index / 2 * kCardSize / 2;
  const uint8_t* p = picture.pixels.data() + static_cast<size_t>((y * kCardSize + x) * 3);
  return {p[0], p[1], p[2]};
}

void expect_patches(const Rgb8& out, const Rgb8& expected, int tolerance) {
  for (int i = 0; i < 4; ++i) {
    const Colour a = patch(out, i);
    const Colour b = patch(expected, i);
    EXPECT_NEAR(a.r, b.r, tolerance) << "red of patch " << i;
    EXPECT_NEAR(a.g, b.g, tolerance) << "green of patch " << i;
    EXPECT_NEAR(a.b, b.b, tolerance) << "blue of patch " << i;
  }
}

Rgb8 read(const std::string& path) { return testing::read_square(path, kCardSize); }

TEST(Png, EveryKindIsExact) {
  const TempDir dir;
  using Kind = PngOptions::Kind;
  for (const bool interlaced : {false, true}) {
    for (const Kind kind : {Kind::kRgb8, Kind::kRgb16, Kind::kGrey16, Kind::kPalette}) {
      const Rgb8 picture = card(kind == Kind::kGrey16);
      testing::write_png(picture, dir.file("a.png"), {.kind = kind, .interlaced = interlaced});
      EXPECT_EQ(probe_image(dir.file("a.png"), {}).format, "png");
      EXPECT_EQ(probe_image(dir.file("a.png"), {}).spooled, interlaced);
      EXPECT_LE(testing::max_difference(read(dir.file("a.png")), picture), 0)
          << "kind " << static_cast<int>(kind) << ", interlaced " << interlaced;
    }
  }
}

TEST(Png, OneBit) {
  const TempDir dir;
  Rgb8 expected = card(/*grey=*/true);
  testing::write_png(expected, dir.file("a.png"), {.kind = PngOptions::Kind::kGrey1});
  for (uint8_t& value : expected.pixels) value = value >= 128 ? 255 : 0;
  EXPECT_EQ(read(dir.file("a.png")).pixels, expected.pixels);
}

TEST(Alpha, TransparentPaletteEntryIsWhite) {
  const TempDir dir;
  testing::write_png(card(), dir.file("a.png"), {.kind = PngOptions::Kind::kPaletteTransparent});
  const Rgb8 out = read(dir.file("a.png"));
  EXPECT_EQ(patch(out, 0).r, 200);
  EXPECT_EQ(patch(out, 3).r, 255);
  EXPECT_EQ(patch(out, 3).g, 255);
  EXPECT_EQ(patch(out, 3).b, 255);
}

TEST(Alpha, IsCompositedOnWhite) {
  const TempDir dir;
  const Rgb8 picture = card();
  testing::SaveOptions options;
  for (int i = 0; i < kCardSize * kCardSize; ++i) {
    options.alpha.push_back(static_cast<uint8_t>(i % kCardSize * 255 / (kCardSize - 1)));
  }
  for (const std::string suffix : {".png", ".tif", ".webp[lossless]"}) {
    ASSERT_TRUE(testing::save(picture, dir.file("a"), suffix, options));
    const Rgb8 out = read(dir.file("a"));
    for (int x = 0; x < kCardSize; x += 9) {
      const int alpha = options.alpha[static_cast<size_t>(x)];
      const int red = picture.pixels[static_cast<size_t>(x) * 3];
      const int expected = (red * alpha + 255 * (255 - alpha)) / 255;
      EXPECT_NEAR(out.pixels[static_cast<size_t>(x) * 3], expected, 1) << suffix << " at " << x;
    }
  }
}

TEST(Jpeg, CodingVariants) {
  const TempDir dir;
  const auto check = [&](const testing::JpegOptions& options, bool spooled) {
    const Rgb8 picture = card(options.space == Space::kGrey);
    testing::write_jpeg(picture, dir.file("a.jpg"), options);
    const ImageInfo info = probe_image(dir.file("a.jpg"), {});
    EXPECT_EQ(info.format, "jpeg");
    EXPECT_EQ(info.spooled, spooled);
    EXPECT_EQ(info.decoder_bytes > 0, spooled);
    expect_patches(read(dir.file("a.jpg")), picture, kLossy);
  };
  check({}, false);
  check({.space = Space::kGrey}, false);
  check({.progressive = true}, true);
  check({.h_sampling = 4}, false);
  check({.arithmetic = true}, false);
  check({.progressive = true, .arithmetic = true}, true);
}

TEST(Jpeg, CmykAndYcckGiveTheSameColours) {
  // What ink looks like on paper depends on the assumed press, so the bounds are coarse: the hue
  // must be right and nothing inverted.
  const TempDir dir;
  testing::write_jpeg(card(), dir.file("cmyk.jpg"), {.space = Space::kCmyk});
  testing::write_jpeg(card(), dir.file("ycck.jpg"), {.space = Space::kYcck});
  const Rgb8 cmyk = read(dir.file("cmyk.jpg"));
  expect_patches(cmyk, card(), 90);
  expect_patches(read(dir.file("ycck.jpg")), cmyk, kLossy);
  EXPECT_GT(patch(cmyk, 0).r, 150);
  EXPECT_GT(patch(cmyk, 1).g, patch(cmyk, 1).r + 60);
  EXPECT_GT(patch(cmyk, 2).b, patch(cmyk, 2).r + 60);
}

TEST(Animation, FirstFrameStandsForAll) {
  const TempDir dir;
  for (const std::string suffix : {".gif", ".webp[lossless]"}) {
    if (!testing::save(card(), dir.file("a"), suffix, {.n_frames = 3})) {
      GTEST_SKIP() << "this libvips cannot write " << suffix;
    }
    EXPECT_EQ(probe_image(dir.file("a"), {}).height, kCardSize) << suffix;
    expect_patches(read(dir.file("a")), card(), kLossy);
  }
}

TEST(Formats, Tiff) {
  const TempDir dir;
  for (const std::string options : {"", "[compression=lzw]", "[compression=deflate,tile]",
                                    "[compression=jpeg,Q=95]", "[pyramid,tile]", "[bigtiff]"}) {
    ASSERT_TRUE(testing::save(card(), dir.file("a.tif"), ".tif" + options)) << options;
    EXPECT_EQ(probe_image(dir.file("a.tif"), {}).format, "tiff");
    expect_patches(read(dir.file("a.tif")), card(),
                   options.find("jpeg") == std::string::npos ? 0 : kLossy);
  }
}

TEST(Formats, Webp) {
  const TempDir dir;
  ASSERT_TRUE(testing::save(card(), dir.file("a"), ".webp[lossless]"));
  EXPECT_EQ(read(dir.file("a")).pixels, card().pixels);
  ASSERT_TRUE(testing::save(card(), dir.file("a"), ".webp[Q=95]"));
  expect_patches(read(dir.file("a")), card(), kLossy);
  EXPECT_EQ(probe_image(dir.file("a"), {}).format, "webp");
  EXPECT_TRUE(probe_image(dir.file("a"), {}).spooled);
}

TEST(Formats, HeifFamily) {
  const TempDir dir;
  for (const std::string format : {"avif", "heic"}) {
    if (!testing::save(card(), dir.file("a"), "." + format + "[Q=95]")) continue;
    try {
      EXPECT_EQ(probe_image(dir.file("a"), {}).format, format);
    } catch (const Error& error) {  // a libvips without the decoder refuses by name
      EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
      continue;
    }
    expect_patches(read(dir.file("a")), card(), 2 * kLossy);
  }
}

TEST(Formats, FakeHeifIsRefusedByName) {
  const TempDir dir;
  using namespace std::string_literals;
  for (const std::string brand : {"heic", "avif"}) {
    const std::string path = dir.write("fake." + brand, "\0\0\0\x0c"s + "ftyp" + brand);
    EXPECT_THAT(error_of([&] { probe_image(path, {}); }).what(), HasSubstr(brand + " "));
  }
}

TEST(Formats, RefusedByName) {
  const TempDir dir;
  using namespace std::string_literals;
  const std::array<std::pair<std::string, std::string>, 12> cases{{
      {"BMP", "BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"s},
      {"TGA", "\0\0\2\0\0\0\0\0\0\0\0\0\1\0\1\0\x18\0abc\0\0\0\0\0\0\0\0TRUEVISION-XFILE.\0"s},
      {"SVG", "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"/>"},
      {"SVG", "\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- x -->\n<svg width=\"9\"></svg>"},
      {"PDF", "%PDF-1.4\n%%EOF"},
      {"HTML", "<!DOCTYPE html>\n<html><body>404</body></html>"},
      {"Photoshop", "8BPS\0\1"s},
      {"JPEG XL", "\xff\x0a\0\0"s},
      {"JPEG 2000", "\0\0\0\x0cjP  \r\n\x87\n"s},
      {"PPM", "P6\n1 1\n255\nabc"},
      {"MP4",
       "\0\0\0\x18"
       "ftypisom\0\0\2\0isom"s},
      {"unknown", "\1\2\3\4\5\6\7\10"},
  }};
  for (const auto& [name, bytes] : cases) {
    const std::string path = dir.write("a.png", bytes);
    const Error error = error_of([&] { probe_image(path, {}); });
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << name;
    EXPECT_THAT(error.what(), HasSubstr(name));
    EXPECT_THAT(error.what(), HasSubstr("PNG"));  // what to do
  }
}

TEST(Formats, ContentDecidesNotTheName) {
  const TempDir dir;
  for (const std::string name : {"a.jpg", "a.svg", "a.pdf", "a", "a.v"}) {
    ASSERT_TRUE(testing::save(card(), dir.file(name), ".png"));
    EXPECT_EQ(probe_image(dir.file(name), {}).format, "png") << name;
    EXPECT_EQ(read(dir.file(name)).pixels, card().pixels) << name;
  }
}

TEST(IccProfile, IsApplied) {
  const TempDir dir;
  // libvips' own Display P3: its red is redder than sRGB can show, its greys are the same.
  ASSERT_TRUE(testing::save(card(), dir.file("p3.png"), ".png", {.icc_profile_file = "p3"}));
  const Rgb8 out = read(dir.file("p3.png"));
  EXPECT_GT(patch(out, 0).r, 205);
  EXPECT_LT(patch(out, 1).r, 10);
  ASSERT_TRUE(
      testing::save(card(/*grey=*/true), dir.file("p3.png"), ".png", {.icc_profile_file = "p3"}));
  expect_patches(read(dir.file("p3.png")), card(/*grey=*/true), 1);
}

TEST(IccProfile, SrgbChangesNothing) {
  const TempDir dir;
  ASSERT_TRUE(testing::save(card(), dir.file("a.png"), ".png", {.icc_profile_file = "srgb"}));
  EXPECT_EQ(read(dir.file("a.png")).pixels, card().pixels);
}

TEST(IccProfile, BrokenOrForeignOneIsIgnored) {
  const TempDir dir;
  for (const std::string& bytes : {std::string("short"), std::string(400, '\0'),
                                   std::string(128, 'x') + std::string(40, '\xff')}) {
    ASSERT_TRUE(testing::save(card(), dir.file("a.tif"), ".tif", {.icc_bytes = bytes}));
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(read(dir.file("a.tif")).pixels, card().pixels);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  }
  ASSERT_TRUE(testing::save(card(), dir.file("a.tif"), ".tif", {.icc_profile_file = "cmyk"}));
  EXPECT_EQ(read(dir.file("a.tif")).pixels, card().pixels);
}

}  // namespace
}  // namespace plateau::media

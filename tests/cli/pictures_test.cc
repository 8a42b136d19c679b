// Pictures as people have them: odd names, degenerate sizes, bombs, orientations, formats.
// A picture is never dropped: with exit code 0 there are visual tokens.
#include <gmock/gmock.h>

#include <filesystem>

#include "cli/plateau_process.h"
#include "media/tiling.h"

namespace plateau::cli::testing {
namespace {

using media::Rgb8;
using media::testing::card;
using media::testing::gradient;
using media::testing::JpegOptions;
using media::testing::noise;
using media::testing::PngOptions;
using media::testing::write_jpeg;
using media::testing::write_png;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kBadInput = 3;
constexpr int kDoesNotFit = 4;

void expect_seen(const std::string& path, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"--image", path, "-p", "hi", "-n", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto stats = stats_of(arguments);
  EXPECT_GT(stats.value("visual_tokens", 0), 0) << path;
}

Finished expect_refused(const std::string& path, int exit_code, const std::string& message,
                        const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"--image", path, "-p", "hi", "-n", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Finished finished = plateau(pico_run(arguments));
  EXPECT_EQ(finished.exit_code, exit_code) << path << ": " << finished.err;
  EXPECT_THAT(finished.err, HasSubstr(message));
  EXPECT_THAT(finished.out, IsEmpty());
  return finished;
}

TEST(FileNames, AreNamesAndNothingElse) {
  const TempDir dir;
  for (const std::string name : {"with space.png", "x.png[shrink=2]", "a(b)&c;$HOME'\".png",
                                 "%s%n.png", "umlaut \xc3\xa4.png", "not utf8 \xff.png"}) {
    write_png(card(), dir.file(name));
    expect_seen(dir.file(name));
  }
}

TEST(FileNames, MayLeadWithADash) {
  const TempDir dir;
  write_png(card(), dir.file("-p.png"));
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  expect_seen("-p.png");
  std::filesystem::current_path(before);
}

TEST(NoPicture, IsNamed) {
  const TempDir dir;
  expect_refused("", kBadInput, "file name");
  expect_refused(dir.file("none.png"), kBadInput, "none.png");
  expect_refused(dir.path(), kBadInput, "directory");
  expect_refused("/dev/zero", kBadInput, "device");
  expect_refused(dir.write("notes.png", "just text\n"), kBadInput, "notes.png");
  expect_refused(dir.write("empty.jpg", ""), kBadInput, "empty.jpg");
}

TEST(Second, PictureMissingStopsBeforeAnyAnswer) {
  const TempDir dir;
  write_png(card(), dir.file("good.png"));
  expect_refused(dir.file("good.png"), kBadInput, "none.png", {"--image", dir.file("none.png")});
}

TEST(DegenerateSizes, AreRead) {
  const TempDir dir;
  for (const auto& [width, height] : std::vector<std::pair<int, int>>{
           {1, 1}, {2, 2}, {27, 257}, {3, 40}, {13, 13}, {1, 5000}, {6000, 29}}) {
    const std::string path = dir.file(std::to_string(width) + "x" + std::to_string(height));
    write_png(noise(width, height), path);
    expect_seen(path);
  }
}

constexpr int64_t kMiB = 1 << 20;

TEST(Bombs, AreRefusedFromTheHeader) {
  const TempDir dir;
  write_png(card(), dir.file("small.png"));
  const int64_t usual =
      plateau(pico_run({"--image", dir.file("small.png"), "-n", "1"})).peak_rss_bytes;

  media::testing::write_blank_png(20000, 20000, dir.file("square.png"));
  std::string liar = media::testing::read_file(dir.file("small.png"));
  liar.replace(16, 8, std::string("\0\0\xff\xff\0\0\xff\xff", 8));
  dir.write("liar.png", liar.substr(0, 63));
  dir.write("screen.gif", std::string("GIF89a\x60\xea\x60\xea\xf0\0\0\0\0\0\xff\xff\xff", 19));
  for (const std::string name : {"square.png", "liar.png", "screen.gif"}) {
    const Finished finished = plateau(
        pico_run({"--image", dir.file(name), "-p", "hi", "--max-image-pixels", "300000000"}));
    EXPECT_THAT(finished.exit_code, AnyOf(kBadInput, kDoesNotFit)) << name << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(name));
    EXPECT_THAT(finished.out, IsEmpty());
    EXPECT_LT(finished.peak_rss_bytes, usual + 32 * kMiB) << name;
  }
}

TEST(Damaged, PixelsThatEndEarlyAreAnError) {
  const TempDir dir;
  write_png(noise(500, 500), dir.file("whole.png"));
  write_jpeg(noise(500, 500), dir.file("whole.jpg"));
  for (const std::string name : {"whole.png", "whole.jpg"}) {
    const std::string bytes = media::testing::read_file(dir.file(name));
    expect_refused(dir.write("cut-" + name, bytes.substr(0, bytes.size() / 2)), kBadInput,
                   "cut-" + name);
  }
}

/// The pixels that a file with this EXIF orientation stores so that it shows `upright`.
Rgb8 stored_pixels(const Rgb8& upright, int orientation) {
  const bool turned = orientation >= 5;
  Rgb8 stored{turned ? upright.height : upright.width, turned ? upright.width : upright.height, {}};
  stored.pixels.resize(upright.pixels.size());
  for (int y = 0; y < upright.height; ++y) {
    for (int x = 0; x < upright.width; ++x) {
      const int right = upright.width - 1 - x;
      const int below = upright.height - 1 - y;
      const std::array<std::pair<int, int>, 8> place = {{{x, y},
                                                         {right, y},
                                                         {right, below},
                                                         {x, below},
                                                         {y, x},
                                                         {y, right},
                                                         {below, right},
                                                         {below, x}}};
      const auto [to_x, to_y] = place[static_cast<size_t>(orientation - 1)];
      for (int channel = 0; channel < 3; ++channel) {
        stored.pixels[static_cast<size_t>((to_y * stored.width + to_x) * 3 + channel)] =
            upright.pixels[static_cast<size_t>((y * upright.width + x) * 3 + channel)];
      }
    }
  }
  return stored;
}

TEST(Orientation, IsAppliedBeforeTheModelLooks) {
  const TempDir dir;
  const Needle needle = make_needle(dir);
  const Rgb8 upright = media::testing::read_grid(
      needle.path, {.n_cols = 8, .n_rows = 4, .tile_size = 112, .thumbnail = false});
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string path = dir.file("turned.png");
    write_png(stored_pixels(upright, orientation), path, {.orientation = orientation});
    const auto stats = stats_of({"--image", path, "-p", needle.question});
    EXPECT_EQ(stats["answer"], needle.answer) << orientation;
    EXPECT_EQ(stats["images"][0]["original_width"], 896) << orientation;
    EXPECT_EQ(stats["images"][0]["original_height"], 448) << orientation;
  }
}

TEST(Orientation, MalformedExifIsIgnored) {
  const TempDir dir;
  write_jpeg(gradient(64, 32), dir.file("plain.jpg"));
  const std::string jpeg = media::testing::read_file(dir.file("plain.jpg"));
  using namespace std::string_literals;
  for (const std::string& exif : {"Exif\0\0"s, "Exif\0\0II*\0\xff\xff\xff\xff"s, "nonsense"s}) {
    expect_seen(dir.write("malformed.jpg", media::testing::with_app1(jpeg, exif)));
  }
}

TEST(Formats, ThatPeopleSendAreRead) {
  const TempDir dir;
  using Kind = PngOptions::Kind;
  for (const Kind kind : {Kind::kRgb8, Kind::kRgb16, Kind::kGrey1, Kind::kGrey16, Kind::kPalette,
                          Kind::kPaletteTransparent}) {
    const bool grey = kind == Kind::kGrey1 || kind == Kind::kGrey16;
    write_png(card(grey), dir.file("card.png"), {.kind = kind});
    expect_seen(dir.file("card.png"));
  }
  write_png(card(), dir.file("adam7.png"), {.interlaced = true});
  expect_seen(dir.file("adam7.png"));
  using Space = JpegOptions::Space;
  for (const Space space : {Space::kYCbCr, Space::kGrey, Space::kCmyk, Space::kYcck}) {
    write_jpeg(card(), dir.file("card.jpg"), {.space = space});
    expect_seen(dir.file("card.jpg"));
  }
  write_jpeg(card(), dir.file("progressive.jpg"), {.progressive = true});
  expect_seen(dir.file("progressive.jpg"));
  for (const char* suffix : {".webp", ".tif", ".gif"}) {
    const std::string path = dir.file(std::string("card") + suffix);
    if (media::testing::save(card(), path, suffix)) expect_seen(path);
  }
  write_png(card(), dir.file("a png.jpg"));
  expect_seen(dir.file("a png.jpg"));
}

TEST(Formats, ThatAreNotReadAreRefused) {
  const TempDir dir;
  using namespace std::string_literals;
  expect_refused(dir.write("a.bmp", "BM\x46\0\0\0\0\0\0\0\x36\0\0\0"s), kBadInput, "a.bmp");
  expect_refused(dir.write("a.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>"), kBadInput,
                 "a.svg");
  expect_refused(dir.write("a.pdf", "%PDF-1.4\n"), kBadInput, "a.pdf");
  expect_refused(dir.write("a.heic",
                           "\0\0\0\x18"
                           "ftypheic\0\0\0\0mif1heic"s),
                 kBadInput, "a.heic");
  expect_refused(dir.write("a.avif",
                           "\0\0\0\x18"
                           "ftypavif\0\0\0\0mif1avif"s),
                 kBadInput, "a.avif");
}

}  // namespace
}  // namespace plateau::cli::testing

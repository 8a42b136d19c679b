// Pictures that the media tests make for themselves, and how they read them back.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "media/image.h"
#include "plateau/error.h"
#include "support/temp_dir.h"

namespace plateau::media::testing {

using test::TempDir;

std::string read_file(const std::string& path);

/// Smooth, different in every channel and direction: survives lossy coding, shows any turn.
Rgb8 gradient(int width, int height);
/// Deterministic noise: shows any wrong pixel.
Rgb8 noise(int width, int height);
/// Four patches, each a quarter of 64 x 64; grey when `grey`.
Rgb8 card(bool grey = false);
inline constexpr int kCardSize = 64;

/// The picture unresized. REQUIRES: `size` is the side of the square picture in the file.
Rgb8 read_square(const std::string& path, int size, const ImageLimits& limits = {});
/// The picture at the size of the grid, put together from its tiles; the thumbnail is dropped.
Rgb8 read_grid(const std::string& path, const TileGrid& grid, const ImageLimits& limits = {});

/// What `call` throws. Fails the test when it throws nothing or something else.
Error error_of(const std::function<void()>& call);

int max_difference(const Rgb8& a, const Rgb8& b);
double mean_difference(const Rgb8& a, const Rgb8& b);

struct SaveOptions {
  int orientation = 0;                // 0: no tag
  int n_frames = 1;                   // the picture is the first, the others are its negative
  std::vector<uint8_t> alpha = {};    // one value per pixel; empty: opaque
  std::string icc_profile_file = {};  // attached, not applied
  std::string icc_bytes = {};         // attached as they are
};

/// Saves with libvips; `suffix_options` are in its syntax, such as ".tif[compression=lzw]".
/// False when this libvips cannot write that format.
bool save(const Rgb8& picture, const std::string& path, const std::string& suffix_options,
          const SaveOptions& options = {});

struct JpegOptions {
  enum class Space { kYCbCr, kGrey, kCmyk, kYcck };
  Space space = Space::kYCbCr;
  bool progressive = false;
  bool arithmetic = false;
  int h_sampling = 1;  // of luma; 4 makes 4:1:1
  int quality = 95;
};
void write_jpeg(const Rgb8& picture, const std::string& path, const JpegOptions& options = {});

struct PngOptions {
  enum class Kind { kRgb8, kRgb16, kGrey1, kGrey16, kPalette, kPaletteTransparent };
  Kind kind = Kind::kRgb8;
  bool interlaced = false;
  int orientation = 0;  // 0: no tag
};
/// The palette holds the 4 card colours; kPaletteTransparent makes the last of them transparent.
void write_png(const Rgb8& picture, const std::string& path, const PngOptions& options = {});
/// A one-colour 1-bit PNG: huge in pixels, small on disc, cheap to make.
void write_blank_png(int width, int height, const std::string& path);

/// `jpeg` with an APP1 segment of this content behind the SOI marker.
std::string with_app1(const std::string& jpeg, std::string_view content);
/// An APP1 content: EXIF with nothing but an orientation.
std::string exif(int orientation);

}  // namespace plateau::media::testing

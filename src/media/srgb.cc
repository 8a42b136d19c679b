// Tested by formats_test.cc.
#include "media/srgb.h"

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace plateau::media {
namespace {

constexpr size_t kIccHeaderBytes = 128;
constexpr size_t kIccTagBytes = 12;

struct ArrayUnref {
  void operator()(VipsArrayDouble* array) const { vips_area_unref(&array->area); }
};

bool is_lab(VipsInterpretation space) {
  return space == VIPS_INTERPRETATION_LAB || space == VIPS_INTERPRETATION_LABS ||
         space == VIPS_INTERPRETATION_LABQ;
}

// TIFFs may tag 16-bit samples with a space that means 8-bit ones.
VipsInterpretation space_of(VipsImage* image) {
  const VipsInterpretation guess = vips_image_guess_interpretation(image);
  if (is_lab(guess) || guess == VIPS_INTERPRETATION_CMYK) return guess;
  const bool wide = image->BandFmt == VIPS_FORMAT_USHORT;
  if (image->Bands < 3) return wide ? VIPS_INTERPRETATION_GREY16 : VIPS_INTERPRETATION_B_W;
  return wide ? VIPS_INTERPRETATION_RGB16 : VIPS_INTERPRETATION_sRGB;
}

int colour_bands(VipsInterpretation space) {
  if (space == VIPS_INTERPRETATION_CMYK) return 4;
  return space == VIPS_INTERPRETATION_B_W || space == VIPS_INTERPRETATION_GREY16 ? 1 : 3;
}

VipsImagePtr flatten_on_white(VipsImage* image, VipsInterpretation space) {
  const double max = image->BandFmt == VIPS_FORMAT_USHORT ? 65535.0 : 255.0;
  std::array<double, 4> white{max, max, max, max};
  if (space == VIPS_INTERPRETATION_CMYK) white = {0, 0, 0, 0};
  if (is_lab(space)) white = {100, 0, 0, 0};
  const std::unique_ptr<VipsArrayDouble, ArrayUnref> background(
      vips_array_double_new(white.data(), colour_bands(space)));
  return vips_result([&](VipsImage** out) {
    return vips_flatten(image, out, "background", background.get(), "max_alpha", max, nullptr);
  });
}

uint32_t read_be32(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | uint32_t{p[3]};
}

// A profile that calls itself sRGB: converting would cost time and change values by rounding only.
bool describes_srgb(const uint8_t* profile, size_t n_bytes) {
  if (n_bytes < kIccHeaderBytes + 4) return false;
  const size_t n_tags = read_be32(profile + kIccHeaderBytes);
  for (size_t i = 0; i < n_tags; ++i) {
    const size_t entry = kIccHeaderBytes + 4 + i * kIccTagBytes;
    if (entry + kIccTagBytes > n_bytes) return false;
    if (std::memcmp(profile + entry, "desc", 4) != 0) continue;
    const size_t offset = read_be32(profile + entry + 4);
    const size_t size = read_be32(profile + entry + 8);
    if (offset > n_bytes || size > n_bytes - offset) return false;
    // Version 2 profiles describe themselves in ASCII, version 4 in UTF-16.
    std::string text;
    for (size_t k = 0; k < size; ++k) {
      if (profile[offset + k] != 0) text.push_back(static_cast<char>(profile[offset + k]));
    }
    return text.find("sRGB") != std::string::npos;
  }
  return false;
}

bool wants_icc(VipsImage* image) {
  const void* profile = nullptr;
  size_t n_bytes = 0;
  if (vips_image_get_typeof(image, VIPS_META_ICC_NAME) == 0 ||
      vips_image_get_blob(image, VIPS_META_ICC_NAME, &profile, &n_bytes) != 0) {
    return false;
  }
  return !describes_srgb(static_cast<const uint8_t*>(profile), n_bytes);
}

// Null when the profile is damaged or made for another number of channels: a bad profile is no
// reason to refuse a good picture.
VipsImagePtr try_icc(VipsImage* image) {
  VipsImagePtr out = vips_result([&](VipsImage** result) {
    return vips_icc_transform(image, result, "srgb", "embedded", TRUE, nullptr);
  });
  if (out == nullptr) vips_error_clear();
  return out;
}

[[noreturn]] void fail(const std::string& path, const VipsSession& session) {
  throw_error(ErrorCode::kUnsupported,
              "[image] expected colours that convert to sRGB, got others in '{}' ({}); try saving "
              "it as PNG",
              path, session.message());
}

}  // namespace

VipsImagePtr to_srgb(VipsImagePtr image, const std::string& path, const VipsSession& session) {
  const VipsInterpretation space = space_of(image.get());
  const bool integers = image->BandFmt == VIPS_FORMAT_UCHAR || image->BandFmt == VIPS_FORMAT_USHORT;
  if (!integers && !is_lab(space)) {
    throw_error(ErrorCode::kUnsupported,
                "[image] expected 8 or 16 bits per sample, got '{}' samples in '{}'; try saving it "
                "as 8-bit PNG",
                vips_enum_nick(VIPS_TYPE_BAND_FORMAT, image->BandFmt), path);
  }
  const auto step = [&](VipsImagePtr next) {
    if (next == nullptr) fail(path, session);
    image = std::move(next);
  };
  step(vips_result([&](VipsImage** out) {
    return vips_copy(image.get(), out, "interpretation", space, nullptr);
  }));
  if (vips_image_hasalpha(image.get())) step(flatten_on_white(image.get(), space));
  if (image->Bands > colour_bands(space)) {
    step(vips_result([&](VipsImage** out) {
      return vips_extract_band(image.get(), out, 0, "n", colour_bands(space), nullptr);
    }));
  }
  VipsImagePtr converted = wants_icc(image.get()) ? try_icc(image.get()) : nullptr;
  if (converted == nullptr) {
    converted = vips_result([&](VipsImage** out) {
      return vips_colourspace(image.get(), out, VIPS_INTERPRETATION_sRGB, nullptr);
    });
  }
  step(std::move(converted));
  if (image->BandFmt != VIPS_FORMAT_UCHAR) {
    step(vips_result(
        [&](VipsImage** out) { return vips_cast(image.get(), out, VIPS_FORMAT_UCHAR, nullptr); }));
  }
  if (image->Bands != 3 || image->Coding != VIPS_CODING_NONE) fail(path, session);
  return image;
}

}  // namespace plateau::media

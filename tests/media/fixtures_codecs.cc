// Writers: libvips where it has a saver for the variant, libjpeg and libpng where it has none.
#include <gtest/gtest.h>
#include <png.h>
#include <stdio.h>
#include <vips/vips.h>
// Behind stdio.h, which it needs.
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <memory>

#include "media/fixtures.h"

// The HEVC encoder behind the HEIC fixture keeps one block for the life of the process.
extern "C" const char* __lsan_default_suppressions() { return "leak:libx265"; }

namespace plateau::media::testing {
namespace {

struct FileClose {
  void operator()(FILE* file) const { fclose(file); }
};
using FilePtr = std::unique_ptr<FILE, FileClose>;

FilePtr open_for_write(const std::string& path) {
  FilePtr file(fopen(path.c_str(), "wb"));
  EXPECT_NE(file, nullptr) << path;
  return file;
}

void start_vips() {
  // The library under test initialises libvips; so does a test that only writes.
  static const int result = vips_init("test");
  EXPECT_EQ(result, 0);
}

const uint8_t* row_of(const Rgb8& picture, int y) {
  return picture.pixels.data() + static_cast<size_t>(y) * static_cast<size_t>(picture.width) * 3;
}

// Whether CMYK files hold ink or its inverse is a matter of habit; Adobe's is the inverse.
std::array<uint8_t, 4> to_inverted_cmyk(const uint8_t* rgb) {
  return {rgb[0], rgb[1], rgb[2], 255};
}

int palette_index(const uint8_t* rgb) {
  const Rgb8 colours = card();
  for (int i = 0; i < 4; ++i) {
    const int x = i % 2 * kCardSize / 2;
    const int y = i / 2 * kCardSize / 2;
    if (std::equal(rgb, rgb + 3, row_of(colours, y) + static_cast<size_t>(x) * 3)) return i;
  }
  ADD_FAILURE() << "not a colour of the card";
  return 0;
}

}  // namespace

bool save(const Rgb8& picture, const std::string& path, const std::string& suffix_options,
          const SaveOptions& options) {
  start_vips();
  const int bands = options.alpha.empty() ? 3 : 4;
  std::vector<uint8_t> pixels;
  for (int frame = 0; frame < options.n_frames; ++frame) {
    for (size_t i = 0; i < picture.pixels.size(); ++i) {
      const int value = picture.pixels[i];
      pixels.push_back(static_cast<uint8_t>(frame == 0 ? value : 255 - value));
      if (bands == 4 && i % 3 == 2) pixels.push_back(options.alpha[i / 3]);
    }
  }
  VipsImage* image =
      vips_image_new_from_memory_copy(pixels.data(), pixels.size(), picture.width,
                                      picture.height * options.n_frames, bands, VIPS_FORMAT_UCHAR);
  image->Type = VIPS_INTERPRETATION_sRGB;
  if (options.orientation != 0) {
    vips_image_set_int(image, VIPS_META_ORIENTATION, options.orientation);
  }
  if (options.n_frames > 1) vips_image_set_int(image, VIPS_META_PAGE_HEIGHT, picture.height);
  if (!options.icc_bytes.empty()) {
    vips_image_set_blob_copy(image, VIPS_META_ICC_NAME, options.icc_bytes.data(),
                             options.icc_bytes.size());
  }
  if (!options.icc_profile_file.empty()) {
    VipsBlob* profile = nullptr;
    EXPECT_EQ(vips_profile_load(options.icc_profile_file.c_str(), &profile, nullptr), 0);
    size_t size = 0;
    const void* data = vips_blob_get(profile, &size);
    vips_image_set_blob_copy(image, VIPS_META_ICC_NAME, data, size);
    vips_area_unref(&profile->area);
  }
  // The target is written under a plain name, then moved, since "path" may look like an option.
  const std::string plain = path.substr(0, path.rfind('/')) + "/saving";
  const std::string suffix = suffix_options.substr(0, suffix_options.find('['));
  const bool saved =
      vips_image_write_to_file(image, (plain + suffix_options).c_str(), nullptr) == 0;
  g_object_unref(image);
  vips_error_clear();
  return saved && rename((plain + suffix).c_str(), path.c_str()) == 0;
}

void write_jpeg(const Rgb8& picture, const std::string& path, const JpegOptions& options) {
  using Space = JpegOptions::Space;
  const bool four = options.space == Space::kCmyk || options.space == Space::kYcck;
  const bool grey = options.space == Space::kGrey;
  const FilePtr file = open_for_write(path);
  jpeg_compress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_compress(&cinfo);
  jpeg_stdio_dest(&cinfo, file.get());
  cinfo.image_width = static_cast<JDIMENSION>(picture.width);
  cinfo.image_height = static_cast<JDIMENSION>(picture.height);
  cinfo.input_components = four ? 4 : grey ? 1 : 3;
  cinfo.in_color_space = four ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&cinfo);
  if (options.space == Space::kYcck) jpeg_set_colorspace(&cinfo, JCS_YCCK);
  jpeg_set_quality(&cinfo, options.quality, TRUE);
  cinfo.comp_info[0].h_samp_factor = options.h_sampling;
  cinfo.comp_info[0].v_samp_factor = 1;
  cinfo.arith_code = options.arithmetic ? TRUE : FALSE;
  if (options.progressive) jpeg_simple_progression(&cinfo);
  jpeg_start_compress(&cinfo, TRUE);
  std::vector<uint8_t> row;
  for (int y = 0; y < picture.height; ++y) {
    row.clear();
    for (int x = 0; x < picture.width; ++x) {
      const uint8_t* rgb = row_of(picture, y) + static_cast<size_t>(x) * 3;
      const std::array<uint8_t, 4> cmyk = to_inverted_cmyk(rgb);
      const uint8_t* pixel = four ? cmyk.data() : rgb;
      row.insert(row.end(), pixel, pixel + cinfo.input_components);
    }
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&cinfo, &rows, 1);
  }
  jpeg_finish_compress(&cinfo);
  jpeg_destroy_compress(&cinfo);
}

void write_png(const Rgb8& picture, const std::string& path, const PngOptions& options) {
  using Kind = PngOptions::Kind;
  const FilePtr file = open_for_write(path);
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_init_io(png, file.get());
  const bool palette = options.kind == Kind::kPalette || options.kind == Kind::kPaletteTransparent;
  const bool grey = options.kind == Kind::kGrey1 || options.kind == Kind::kGrey16;
  const bool wide = options.kind == Kind::kRgb16 || options.kind == Kind::kGrey16;
  const int depth = wide ? 16 : options.kind == Kind::kGrey1 ? 1 : 8;
  const int colour = palette ? PNG_COLOR_TYPE_PALETTE
                     : grey  ? PNG_COLOR_TYPE_GRAY
                             : PNG_COLOR_TYPE_RGB;
  png_set_IHDR(png, info, static_cast<png_uint_32>(picture.width),
               static_cast<png_uint_32>(picture.height), depth, colour,
               options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (palette) {
    std::array<png_color, 4> colours{};
    const Rgb8 reference = card();
    for (int i = 0; i < 4; ++i) {
      const uint8_t* rgb =
          row_of(reference, i / 2 * kCardSize / 2) + static_cast<size_t>(i % 2 * kCardSize / 2) * 3;
      colours[static_cast<size_t>(i)] = {rgb[0], rgb[1], rgb[2]};
    }
    png_set_PLTE(png, info, colours.data(), 4);
    const std::array<png_byte, 4> alphas{255, 255, 255, 0};
    if (options.kind == Kind::kPaletteTransparent) {
      png_set_tRNS(png, info, alphas.data(), 4, nullptr);
    }
  }
  std::string tag = exif(options.orientation).substr(6);  // without the JPEG segment's own name
  if (options.orientation != 0) {
    std::vector<png_byte> bytes(tag.begin(), tag.end());
    png_set_eXIf_1(png, info, static_cast<png_uint_32>(bytes.size()), bytes.data());
  }
  png_write_info(png, info);
  if (depth == 1) png_set_packing(png);
  std::vector<std::vector<uint8_t>> rows(static_cast<size_t>(picture.height));
  std::vector<png_bytep> pointers;
  for (int y = 0; y < picture.height; ++y) {
    std::vector<uint8_t>& row = rows[static_cast<size_t>(y)];
    for (int x = 0; x < picture.width; ++x) {
      const uint8_t* rgb = row_of(picture, y) + static_cast<size_t>(x) * 3;
      if (palette) {
        row.push_back(static_cast<uint8_t>(palette_index(rgb)));
      } else if (depth == 1) {
        row.push_back(rgb[0] >= 128);
      } else {
        for (int c = 0; c < (grey ? 1 : 3); ++c) {
          row.push_back(rgb[c]);
          if (wide) row.push_back(rgb[c]);
        }
      }
    }
    pointers.push_back(row.data());
  }
  png_write_image(png, pointers.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
}

void write_blank_png(int width, int height, const std::string& path) {
  const FilePtr file = open_for_write(path);
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_init_io(png, file.get());
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), 1,
               PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_set_compression_level(png, 1);
  png_write_info(png, info);
  const std::vector<uint8_t> row(static_cast<size_t>(width) / 8 + 1, 0xff);
  for (int y = 0; y < height; ++y) png_write_row(png, row.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
}

}  // namespace plateau::media::testing

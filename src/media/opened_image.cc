// Tested by limits_test.cc, formats_test.cc and orientation_test.cc.
#include "media/opened_image.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "media/tiff_layout.h"
#include "media/vips_session.h"

namespace plateau::media {
namespace {

constexpr int64_t kBytesPerPixel = 3;
// libvips keeps up to this many rows of TIFF tiles, or strips.
constexpr int64_t kTiffPieces = 3;
// What a decoder may hold and still count as working in bands.
constexpr int64_t kMaxBandedBytes = int64_t{64} << 20;

struct Size {
  int64_t width;
  int64_t height;
};

int64_t read_uint(const std::vector<uint8_t>& bytes, size_t offset, size_t n_bytes,
                  bool big_endian) {
  int64_t value = 0;
  for (size_t i = 0; i < n_bytes; ++i) {
    value = value << 8 | bytes[offset + (big_endian ? i : n_bytes - 1 - i)];
  }
  return value;
}

// The two formats whose size stands at a fixed place: most bombs are of them, and are so refused
// before any decoder has seen the file.
std::optional<Size> size_at_fixed_place(const InputFile& file, std::string_view format) {
  const std::vector<uint8_t> head = file.read_at(0, 24);
  if (format == "png" && head.size() == 24) {
    return Size{read_uint(head, 16, 4, true), read_uint(head, 20, 4, true)};
  }
  if (format == "gif" && head.size() >= 10) {
    return Size{read_uint(head, 6, 2, false), read_uint(head, 8, 2, false)};
  }
  return std::nullopt;
}

void check_size(const std::string& path, Size size, const ImageLimits& limits) {
  if (size.width < 1 || size.height < 1) {
    throw_error(ErrorCode::kCorrupt, "[image] expected at least one pixel, got {} x {} in '{}'",
                size.width, size.height, path);
  }
  if (std::max(size.width, size.height) > kMaxImageSide) {
    throw_error(ErrorCode::kResourceExhausted,
                "[image] expected sides of at most {} pixels, got {} x {} in '{}'; try cutting it",
                kMaxImageSide, size.width, size.height, path);
  }
  if (size.width > limits.max_pixels / size.height) {
    throw_error(ErrorCode::kResourceExhausted,
                "[image] expected at most {} pixels, got {} x {} in '{}'; try a smaller picture or "
                "a higher pixel limit",
                limits.max_pixels, size.width, size.height, path);
  }
}

bool has_int(VipsImage* image, const char* name) {
  int value = 0;
  return vips_image_get_typeof(image, name) != 0 && vips_image_get_int(image, name, &value) == 0 &&
         value != 0;
}

// What the decoder keeps on the heap when it cannot work in bands, from how each library works.
int64_t decoder_bytes(VipsImage* image, const InputFile& file, const ImageFormat& format) {
  const int64_t n_pixels = int64_t{image->Xsize} * image->Ysize;
  if (format.decodes_whole) {
    // WebP: the frame and the canvas in RGBA. GIF: the canvas and the restore buffer in RGBA.
    // HEIF: planes and their interleaved copy, up to 16 bits deep.
    return n_pixels * 8;
  }
  const auto pixel_bytes = static_cast<int64_t>(VIPS_IMAGE_SIZEOF_PEL(image));
  if (std::strcmp(format.name, "tiff") == 0) {
    const int64_t n_rows = kTiffPieces * tiff_rows_per_piece(file, image->Ysize);
    const int64_t n_bytes = n_rows * image->Xsize * pixel_bytes;
    return n_bytes > kMaxBandedBytes ? n_bytes : 0;
  }
  if (!has_int(image, "interlaced")) return 0;
  if (std::strcmp(format.name, "jpeg") == 0) {
    // libjpeg keeps the 16-bit coefficients of all components. libvips says "4:2:0" for any
    // subsampling, whose largest case is a chroma halved along one axis.
    const char* subsampling = nullptr;
    const bool halved = image->Bands == 3 &&
                        vips_image_get_string(image, "jpeg-chroma-subsample", &subsampling) == 0 &&
                        std::strcmp(subsampling, "4:2:0") == 0;
    return n_pixels * 2 * (halved ? 2 : image->Bands);
  }
  return n_pixels * pixel_bytes;
}

VipsImagePtr read_header(const InputFile& file, const ImageFormat& format) {
  const VipsSession session;
  // The source duplicates the descriptor, and with it the file position.
  const VipsSourcePtr source(
      ::lseek(file.fd(), 0, SEEK_SET) == 0 ? vips_source_new_from_descriptor(file.fd()) : nullptr);
  VipsImagePtr image;
  if (source != nullptr) {
    image = vips_result([&](VipsImage** out) {
      return vips_call(format.loader, source.get(), out, "access", VIPS_ACCESS_SEQUENTIAL,
                       "fail_on", VIPS_FAIL_ON_ERROR, nullptr);
    });
  }
  if (image == nullptr) {
    const std::string reason = session.message();
    const bool unsupported = reason.find("nsupported") != std::string::npos;
    throw_error(unsupported ? ErrorCode::kUnsupported : ErrorCode::kCorrupt,
                "[image] expected a readable {} header, got '{}' ({}); try saving it as PNG",
                format.name, file.path(), reason);
  }
  return image;
}

}  // namespace

OpenedImage open_image(const std::string& path, const ImageLimits& limits) {
  InputFile file(path);
  const ImageFormat& format = detect_format(file);
  if (const std::optional<Size> size = size_at_fixed_place(file, format.name); size.has_value()) {
    check_size(path, *size, limits);
  }
  OpenedImage opened{std::move(file), &format, nullptr, 1, {}};
  opened.image = read_header(opened.file, format);
  VipsImage* image = opened.image.get();
  check_size(path, {image->Xsize, image->Ysize}, limits);

  opened.orientation = vips_image_get_orientation(image);
  ImageInfo& info = opened.info;
  info.width = image->Xsize;
  info.height = image->Ysize;
  if (opened.orientation >= 5) std::swap(info.width, info.height);
  info.format = format.name;
  info.decoder_bytes = decoder_bytes(image, opened.file, format);
  info.spooled = info.decoder_bytes > 0 || opened.orientation != 1;

  if (info.decoder_bytes > limits.max_decoder_bytes) {
    throw_error(ErrorCode::kResourceExhausted,
                "[image] expected a picture whose decoder needs at most {} bytes, got {} for the "
                "{} x {} {} in '{}', which cannot be decoded in bands; try saving it as baseline "
                "JPEG or non-interlaced PNG",
                limits.max_decoder_bytes, info.decoder_bytes, info.width, info.height, info.format,
                path);
  }
  const int64_t spool_bytes = info.width * info.height * kBytesPerPixel;
  if (info.spooled && spool_bytes > limits.max_spool_bytes) {
    throw_error(ErrorCode::kResourceExhausted,
                "[image] expected a temporary file of at most {} bytes, got {} for the {} x {} {} "
                "in '{}'; try saving it upright as baseline JPEG or non-interlaced PNG",
                limits.max_spool_bytes, spool_bytes, info.width, info.height, info.format, path);
  }
  return opened;
}

}  // namespace plateau::media

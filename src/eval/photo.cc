// Tested by scene_test.cc.
#include "eval/photo.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "eval/vips_handle.h"

namespace plateau::eval {
namespace {

/// The image that a libvips operation makes from another: `operation` fills its argument and
/// returns 0.
template <typename Operation>
VipsImagePtr made_by(const std::string& path, Operation operation) {
  VipsImage* result = nullptr;
  if (operation(&result) != 0) {
    throw_vips(ErrorCode::kUnsupported, "cannot use background '" + path + "'");
  }
  return VipsImagePtr(result);
}

VipsImagePtr load_srgb(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    throw_error(ErrorCode::kNotFound, "[needle] expected a background picture at '{}', got no file",
                path);
  }
  // Through a source, because libvips reads options out of "[...]" in a file name.
  const VipsSourcePtr source(vips_source_new_from_file(path.c_str()));
  if (source == nullptr) throw_vips(ErrorCode::kNotFound, "cannot open '" + path + "'");
  VipsImagePtr image(vips_image_new_from_source(source.get(), "", nullptr));
  if (image == nullptr) {
    throw_vips(ErrorCode::kUnsupported, "cannot read background '" + path + "'");
  }
  image = made_by(path, [&](VipsImage** out) { return vips_autorot(image.get(), out, nullptr); });
  image = made_by(path, [&](VipsImage** out) {
    return vips_colourspace(image.get(), out, VIPS_INTERPRETATION_sRGB, nullptr);
  });
  if (vips_image_hasalpha(image.get()) != 0) {
    image = made_by(path, [&](VipsImage** out) { return vips_flatten(image.get(), out, nullptr); });
  }
  image =
      made_by(path, [&](VipsImage** out) { return vips_cast_uchar(image.get(), out, nullptr); });
  if (image->Bands != 3) {
    throw_error(ErrorCode::kUnsupported, "[needle] expected 3 colour channels in '{}', got {}",
                path, image->Bands);
  }
  return image;
}

VipsImagePtr cover(VipsImagePtr image, int64_t width, int64_t height, const std::string& path) {
  const double scale = std::max(static_cast<double>(width) / image->Xsize,
                                static_cast<double>(height) / image->Ysize);
  // One side may round to a pixel less than asked: stretch to at least the size, then crop.
  const double want_width = std::max<double>(static_cast<double>(width), image->Xsize * scale);
  const double want_height = std::max<double>(static_cast<double>(height), image->Ysize * scale);
  const double x_scale = std::ceil(want_width - 1e-6) / image->Xsize;
  const double y_scale = std::ceil(want_height - 1e-6) / image->Ysize;
  image = made_by(path, [&](VipsImage** out) {
    return vips_resize(image.get(), out, x_scale, "vscale", y_scale, nullptr);
  });
  PLATEAU_CHECK(image->Xsize >= width && image->Ysize >= height);
  const int left = (image->Xsize - static_cast<int>(width)) / 2;
  const int top = (image->Ysize - static_cast<int>(height)) / 2;
  return made_by(path, [&](VipsImage** out) {
    return vips_crop(image.get(), out, left, top, static_cast<int>(width), static_cast<int>(height),
                     nullptr);
  });
}

}  // namespace

struct Photo::Impl {
  std::string path;
  VipsImagePtr image;
};

Photo::Photo(const std::string& path, int64_t width, int64_t height)
    : impl_(std::make_unique<Impl>()) {
  ensure_vips();
  impl_->path = path;
  impl_->image = cover(load_srgb(path), width, height, path);
}

Photo::~Photo() = default;

void Photo::read(int64_t top, RgbView band) {
  const VipsRect rect = {0, static_cast<int>(top), static_cast<int>(band.width),
                         static_cast<int>(band.height)};
  // A region belongs to the thread that made it, and bands are asked for by any of libvips'
  // threads.
  const VipsRegionPtr region(vips_region_new(impl_->image.get()));
  if (region == nullptr || vips_region_prepare(region.get(), &rect) != 0) {
    throw_vips(ErrorCode::kCorrupt, "background '" + impl_->path + "' is damaged");
  }
  for (int64_t y = 0; y < band.height; ++y) {
    const VipsPel* row = VIPS_REGION_ADDR(region.get(), 0, static_cast<int>(top + y));
    std::memcpy(band.row(y), row, static_cast<size_t>(band.width) * 3);
  }
}

}  // namespace plateau::eval

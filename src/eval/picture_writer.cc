// Tested by scene_test.cc.
#include "eval/picture_writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>

#include "base/check.h"
#include "eval/vips_handle.h"

namespace plateau::eval {
namespace {

constexpr int64_t kMaxJpegSide = 65500;  // libjpeg's JPEG_MAX_DIMENSION

enum class Format { kPng, kJpeg };

Format format_of(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".png") return Format::kPng;
  if (extension == ".jpg" || extension == ".jpeg") return Format::kJpeg;
  throw_error(ErrorCode::kInvalidArgument,
              "[needle] expected a picture named *.png, *.jpg or *.jpeg, got '{}'", path);
}

/// What libvips' threads pull rows from. Two bands are kept, because threads that ask for strips
/// around a border may arrive in either order.
class BandCache {
 public:
  BandCache(const PictureLayout& layout, const BandPainter& paint)
      : layout_(layout), paint_(paint) {}

  /// Copies a rectangle of the picture; false when painting threw. Thread-safe.
  bool copy(VipsRegion* region) {
    const std::lock_guard lock(mutex_);
    if (failure_) return false;
    try {
      const VipsRect& rect = region->valid;
      for (int y = rect.top; y < rect.top + rect.height; ++y) {
        const uint8_t* row = row_of_picture(y);
        std::memcpy(VIPS_REGION_ADDR(region, rect.left, y), row + int64_t{3} * rect.left,
                    static_cast<size_t>(rect.width) * 3);
      }
      return true;
    } catch (...) {
      failure_ = std::current_exception();
      return false;
    }
  }

  void rethrow_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  struct Band {
    int index = -1;
    std::vector<uint8_t> pixels;  // [rows, width, 3]
  };

  const uint8_t* row_of_picture(int64_t y) {
    const auto above = std::upper_bound(layout_.band_tops.begin(), layout_.band_tops.end(), y) - 1;
    const int index = static_cast<int>(above - layout_.band_tops.begin());
    Band& band = bands_[static_cast<size_t>(index % 2)];
    if (band.index != index) fill(band, index);
    return band.pixels.data() + (y - *above) * layout_.width * 3;
  }

  void fill(Band& band, int index) {
    const int64_t height = layout_.band_tops[index + 1] - layout_.band_tops[index];
    band.index = -1;
    band.pixels.resize(static_cast<size_t>(layout_.width * height * 3));
    paint_(index, RgbView{band.pixels.data(), layout_.width, height, layout_.width * 3});
    band.index = index;
  }

  const PictureLayout& layout_;
  const BandPainter& paint_;
  std::mutex mutex_;
  std::array<Band, 2> bands_;
  std::exception_ptr failure_;
};

int generate(VipsRegion* region, void* /*sequence*/, void* cache, void* /*unused*/,
             gboolean* /*stop*/) {
  return static_cast<BandCache*>(cache)->copy(region) ? 0 : -1;
}

VipsImagePtr picture_of(BandCache& cache, const PictureLayout& layout) {
  VipsImagePtr image(vips_image_new());
  vips_image_init_fields(image.get(), static_cast<int>(layout.width),
                         static_cast<int>(layout.band_tops.back()), 3, VIPS_FORMAT_UCHAR,
                         VIPS_CODING_NONE, VIPS_INTERPRETATION_sRGB, 1.0, 1.0);
  if (vips_image_pipelinev(image.get(), VIPS_DEMAND_STYLE_FATSTRIP, nullptr) != 0 ||
      vips_image_generate(image.get(), nullptr, generate, nullptr, &cache, nullptr) != 0) {
    throw_vips(ErrorCode::kInternal, "cannot set up the picture");
  }
  return image;
}

int save(VipsImage* image, const std::string& path, Format format) {
  switch (format) {
    case Format::kPng:
      // The backdrop is noise: more effort makes the file hardly smaller.
      return vips_pngsave(image, path.c_str(), "compression", 1, "strip", TRUE, nullptr);
    case Format::kJpeg:
      return vips_jpegsave(image, path.c_str(), "Q", 95, "subsample_mode",
                           VIPS_FOREIGN_SUBSAMPLE_OFF, "strip", TRUE, nullptr);
  }
  return -1;
}

}  // namespace

void write_picture(const std::string& path, const PictureLayout& layout, const BandPainter& paint) {
  PLATEAU_CHECK(layout.width > 0 && layout.band_tops.size() >= 2 && layout.band_tops[0] == 0);
  const Format format = format_of(path);
  const int64_t height = layout.band_tops.back();
  if (format == Format::kJpeg && std::max(layout.width, height) > kMaxJpegSide) {
    throw_error(ErrorCode::kInvalidArgument,
                "[needle] expected at most {} pixels a side for JPEG, got {}x{}; try PNG",
                kMaxJpegSide, layout.width, height);
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored)) {
    throw_error(ErrorCode::kNotFound, "[needle] expected a folder '{}', got none", folder.string());
  }
  ensure_vips();
  BandCache cache(layout, paint);
  const VipsImagePtr image = picture_of(cache, layout);
  if (save(image.get(), path, format) != 0) {
    std::filesystem::remove(path, ignored);
    cache.rethrow_failure();
    throw_vips(ErrorCode::kUnavailable, "cannot write '" + path + "'");
  }
}

}  // namespace plateau::eval

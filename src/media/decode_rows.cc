// Tested by image_test.cc and limits_test.cc.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "media/row_source.h"
#include "media/srgb.h"
#include "media/vips_session.h"

namespace plateau::media {
namespace {

// Strips are asked for at this size: large enough that the cost of a call disappears, small beside
// the buffers of the decoder. A multiple of 16 rows suits the JPEG decoder's own strips.
constexpr int kStripBytes = 1 << 18;
constexpr int kStripRows = 16;
constexpr int kMaxStripRows = 256;

int strip_rows(int width) {
  const int n_rows = kStripBytes / (3 * width) / kStripRows * kStripRows;
  return std::clamp(n_rows, kStripRows, kMaxStripRows);
}

// libjpeg goes on after damage and fills in grey; it only warns, and libvips only keeps the first
// warning. Bytes left over before a marker are harmless padding that some cameras write.
bool tells_damage(const std::string& message) {
  return message.find("Corrupt JPEG data") != std::string::npos &&
         message.find("extraneous bytes") == std::string::npos;
}

class DecodedRows : public RowSource {
 public:
  explicit DecodedRows(OpenedImage& opened)
      : path_(opened.file.path()),
        format_(opened.format->name),
        checks_warnings_(std::strcmp(opened.format->name, "jpeg") == 0) {
    const VipsSession session;
    image_ = to_srgb(std::move(opened.image), path_, session);
    region_.reset(vips_region_new(image_.get()));
    PLATEAU_CHECK(region_ != nullptr);
  }

  int width() const override { return image_->Xsize; }
  int height() const override { return image_->Ysize; }

  const uint8_t* next_row() override {
    PLATEAU_CHECK(y_ < height());
    if (y_ == strip_end_) decode_strip();
    return region_row(region_.get(), y_++);
  }

 private:
  void decode_strip() {
    const VipsSession session;
    const int n_rows = std::min(strip_rows(width()), height() - y_);
    const VipsRect strip{0, y_, width(), n_rows};
    const bool failed = vips_region_prepare(region_.get(), &strip) != 0;
    const std::string message = session.message();
    if (failed || (checks_warnings_ && tells_damage(message))) {
      throw_error(ErrorCode::kCorrupt,
                  "[image] expected {} rows of {} data, got an error near row {} of '{}' ({}); try "
                  "a complete copy of the file",
                  height(), format_, y_, path_, message);
    }
    strip_end_ = y_ + n_rows;
  }

  std::string path_;
  std::string format_;
  bool checks_warnings_;
  VipsImagePtr image_;
  VipsRegionPtr region_;  // after image_: released first
  int y_ = 0;
  int strip_end_ = 0;
};

}  // namespace

std::unique_ptr<RowSource> decode_rows(OpenedImage& opened) {
  return std::make_unique<DecodedRows>(opened);
}

}  // namespace plateau::media

// Tested by pixel_bands_test.cc.
#include "media/pixel_bands.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "media/opened_image.h"
#include "media/resampler.h"
#include "media/row_source.h"
#include "media/spool.h"

namespace plateau::media {

struct BandReader::Impl {
  Impl(const std::string& path, int out_width, int out_height, const ImageLimits& image_limits)
      : width(out_width), height(out_height), limits(image_limits) {
    if (width < 1 || height < 1 || std::max(width, height) > 2 * kMaxImageSide) {
      throw_error(ErrorCode::kInvalidArgument, "[image] expected sides of 1 to {}, got {} x {}",
                  2 * kMaxImageSide, width, height);
    }
    opened.emplace(open_image(path, limits));
  }

  std::span<const uint8_t> next(int n_rows) {
    PLATEAU_CHECK(n_rows >= 1 && n_rows <= height - out_y);
    if (rows == nullptr) start();
    const size_t row_bytes = static_cast<size_t>(width) * 3;
    band.resize(static_cast<size_t>(n_rows) * row_bytes);
    for (int y = 0; y < n_rows; ++y) {
      while (!resampler->ready()) pull_row();
      resampler->pop(band.data() + static_cast<size_t>(y) * row_bytes);
    }
    out_y += n_rows;
    // So that an early end of the file cannot pass unnoticed.
    if (out_y == height) {
      while (in_y < rows->height()) pull_row();
    }
    return band;
  }

  int width;
  int height;
  std::optional<Error> failure;  // a damaged picture has no further bands

 private:
  void start() {
    std::unique_ptr<RowSource> source = decode_rows(*opened);
    if (opened->info.spooled) {
      source = spool_upright(*source, opened->orientation, limits.spool_dir);
    }
    resampler.emplace(source->width(), source->height(), width, height);
    rows = std::move(source);
  }

  void pull_row() {
    resampler->push(rows->next_row());
    ++in_y;
  }

  ImageLimits limits;
  std::optional<OpenedImage> opened;
  std::unique_ptr<RowSource> rows;  // after opened: reads from its file
  std::optional<Resampler> resampler;
  std::vector<uint8_t> band;
  int in_y = 0;
  int out_y = 0;
};

BandReader::BandReader(const std::string& path, int width, int height, const ImageLimits& limits)
    : impl_(std::make_unique<Impl>(path, width, height, limits)) {}
BandReader::~BandReader() = default;

int BandReader::width() const { return impl_->width; }
int BandReader::height() const { return impl_->height; }

std::span<const uint8_t> BandReader::next(int n_rows) {
  if (impl_->failure.has_value()) throw *impl_->failure;
  try {
    return impl_->next(n_rows);
  } catch (const Error& error) {
    impl_->failure = error;
    throw;
  }
}

std::span<const uint8_t> FrameBands::next(int n_rows) {
  PLATEAU_CHECK(n_rows >= 1 && n_rows <= frame_.height - y_);
  const size_t row_bytes = static_cast<size_t>(frame_.width) * 3;
  const size_t begin = static_cast<size_t>(y_) * row_bytes;
  y_ += n_rows;
  return std::span(frame_.pixels).subspan(begin, static_cast<size_t>(n_rows) * row_bytes);
}

}  // namespace plateau::media

// A picture as bands of 8-bit sRGB rows, pulled from top to bottom, once: how a vision tower that
// takes any size reads it.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "media/image.h"

namespace plateau::media {

class PixelBands {
 public:
  virtual ~PixelBands() = default;

  virtual int width() const = 0;
  virtual int height() const = 0;
  /// The next `n_rows` rows, [n_rows * width * 3] bytes as in Rgb8, valid until the next call.
  /// REQUIRES: no more rows than are left. Errors: kCorrupt, kResourceExhausted, kUnavailable, as
  /// TileReader::next().
  virtual std::span<const uint8_t> next(int n_rows) = 0;
};

/// A picture file, resized to width x height as Pillow's BICUBIC does. Holds one band and the rows
/// that the resize needs. Otherwise as TileReader.
class BandReader final : public PixelBands {
 public:
  /// Errors: as probe_image(), kInvalidArgument for a size that is empty or absurdly large.
  BandReader(const std::string& path, int width, int height, const ImageLimits& limits);
  ~BandReader() override;

  int width() const override;
  int height() const override;
  std::span<const uint8_t> next(int n_rows) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A picture that is in memory already, such as a film's frame.
class FrameBands final : public PixelBands {
 public:
  /// `frame` must outlive this.
  explicit FrameBands(const Rgb8& frame) : frame_(frame) {}

  int width() const override { return frame_.width; }
  int height() const override { return frame_.height; }
  std::span<const uint8_t> next(int n_rows) override;

 private:
  const Rgb8& frame_;
  int y_ = 0;
};

}  // namespace plateau::media

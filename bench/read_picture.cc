#include "read_picture.h"

#include <algorithm>

#include "media/pixel_bands.h"

namespace plateau {

test::RgbPicture read_picture(const std::string& path, int width, int height,
                              const media::ImageLimits& limits) {
  constexpr int kRows = 64;  // read at once
  media::BandReader bands(path, width, height, limits);
  test::RgbPicture picture = {.width = width, .height = height};
  picture.pixels.reserve(3 * static_cast<size_t>(width) * static_cast<size_t>(height));
  for (int y = 0; y < height; y += kRows) {
    const auto rows = bands.next(std::min(kRows, height - y));
    picture.pixels.insert(picture.pixels.end(), rows.begin(), rows.end());
  }
  return picture;
}

}  // namespace plateau

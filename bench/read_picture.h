#pragma once

#include <string>

#include "media/image.h"
#include "support/mtmd_oracle.h"

namespace plateau {

/// A whole picture at this size, as libmtmd wants it. Errors: those of media::BandReader.
test::RgbPicture read_picture(const std::string& path, int width, int height,
                              const media::ImageLimits& limits = {});

}  // namespace plateau

// Antialiased bicubic resize as plain loops over the definition, in double precision, sharing
// nothing with the production code. Reference for tests only: slow.
#pragma once

#include "media/image.h"

namespace plateau::media::testing {

Rgb8 reference_resize(const Rgb8& in, int width, int height);

}  // namespace plateau::media::testing

// Draws a picture with a share per grid cell over it: what was remembered is bright, what was
// dropped is dark. Tested by tests/media/heatmap_test.cc.
#pragma once

#include <string>
#include <vector>

#include "media/image.h"

namespace plateau::media {

struct Heatmap {
  int n_cols = 0;
  int n_rows = 0;
  std::vector<float> share;  // [n_cols, n_rows], each in [0, 1]
};

/// Writes a PNG of at most 2048 pixels a side: the picture upright, in its own aspect ratio, over a
/// strip with the scale from share 0 to 1 (left out where the picture is too narrow for it).
/// Errors: those of TileReader; kInvalidArgument for a grid that has no cells or not one share per
/// cell, or a NaN in it; kUnavailable when the file cannot be written.
void write_heatmap(const std::string& image_path, const std::string& png_path,
                   const Heatmap& heatmap, const ImageLimits& limits);

}  // namespace plateau::media

// Draws one placed object, label or card: an SVG drawing rendered by libvips.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/canvas.h"
#include "eval/grid.h"
#include "eval/placement.h"

namespace plateau::eval {

/// A drawing with transparency, and where it lies in the picture.
struct Sprite {
  PixelBox box;               // of `pixels`, in picture pixels
  PixelBox painted;           // smallest box of what can be seen
  std::vector<uint8_t> rgba;  // [box.height, box.width, 4], straight alpha
};

/// The drawing as an SVG document that covers `box`, one unit of it being a tile pixel, so that a
/// resize which is not the same in both directions comes out right in the tile.
std::string sprite_svg(const Placement& object, const CellGrid& grid, const PixelBox& box);

Sprite render_sprite(const Placement& object, const CellGrid& grid);

/// Lays the part of the sprite that meets the band over it. `band_top` is the picture row of the
/// band's first row; the band is as wide as the picture.
void draw_sprite(const Sprite& sprite, RgbView band, int64_t band_top);

}  // namespace plateau::eval

// Tested by sprite_test.cc.
#include "eval/sprite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "eval/assets.h"
#include "eval/vips_handle.h"

namespace plateau::eval {
namespace {

// What a drawing may reach beyond its square of `size`: ears, points and half the outline.
constexpr int kOverhang = 4;
// Sizes of the digit and letter drawings, in units of the font.
constexpr double kDigitAdvance = 1425;
constexpr double kDigitHeight = 1493;
constexpr double kUnitsPerEm = 2048;

std::string hex(Rgb color) { return fmt::format("#{:02x}{:02x}{:02x}", color.r, color.g, color.b); }

int64_t first_pixel(double edge) { return static_cast<int64_t>(std::floor(edge)); }
int64_t end_pixel(double edge) { return static_cast<int64_t>(std::ceil(edge)); }

/// What the drawing may cover right of and below its corner, in tile pixels.
struct Extent {
  int width = 0;
  int height = 0;
};

Extent extent_of(const Placement& object) {
  if (!object.words.empty()) {
    size_t longest = 0;
    for (const std::string_view word : object.words) longest = std::max(longest, word.size());
    return {static_cast<int>(longest) * letter_width(object.font_size) + 8,
            static_cast<int>(object.words.size()) * object.font_size + 6};
  }
  if (object.digit == kNoDigit) return {object.size, object.size};
  return {std::max(object.size, digit_width(object.font_size) + 3),
          object.size + digit_height(object.font_size) + 8};
}

/// Whole picture pixels around the drawing, kept inside its cell.
PixelBox box_around(const Placement& object, const CellGrid& grid) {
  const double cell = grid.cell();
  const Extent extent = extent_of(object);
  const double left = object.col * cell + object.x - kOverhang;
  const double top = object.row * cell + object.y - kOverhang;
  const double right = object.col * cell + object.x + kOverhang + extent.width;
  const double bottom = object.row * cell + object.y + kOverhang + extent.height;
  PixelBox box;
  box.x = std::max(grid.left(object.col), first_pixel(left * grid.x_scale()));
  box.y = std::max(grid.top(object.row), first_pixel(top * grid.y_scale()));
  box.width = std::min(grid.left(object.col + 1), end_pixel(right * grid.x_scale())) - box.x;
  box.height = std::min(grid.top(object.row + 1), end_pixel(bottom * grid.y_scale())) - box.y;
  PLATEAU_CHECK(box.width > 0 && box.height > 0);
  return box;
}

PixelBox painted_box(const Sprite& sprite) {
  int64_t left = sprite.box.width;
  int64_t top = sprite.box.height;
  int64_t right = 0;
  int64_t bottom = 0;
  for (int64_t y = 0; y < sprite.box.height; ++y) {
    for (int64_t x = 0; x < sprite.box.width; ++x) {
      if (sprite.rgba[(y * sprite.box.width + x) * 4 + 3] == 0) continue;
      left = std::min(left, x);
      right = std::max(right, x + 1);
      top = std::min(top, y);
      bottom = std::max(bottom, y + 1);
    }
  }
  PLATEAU_CHECK(left < right && top < bottom);
  return {sprite.box.x + left, sprite.box.y + top, right - left, bottom - top};
}

// Shape coordinates name pixel centres, as in the training tiles; hence the half pixel.
std::string object_svg(const Placement& object) {
  return fmt::format(R"svg(<g transform="translate({:.1f} {:.1f}) scale({})" color="{}")svg"
                     R"svg( fill="currentColor" stroke="{}" stroke-width="{:.5f}">{}</g>)svg",
                     object.x + 0.5, object.y + 0.5, object.size, hex(object.color),
                     hex(object.outline), static_cast<double>(object.outline_width) / object.size,
                     asset_body(object.object));
}

/// White around the object and its digit.
std::string backing_svg(const Placement& object) {
  const Extent extent = extent_of(object);
  return fmt::format(R"svg(<rect x="{}" y="{}" width="{}" height="{}" fill="white"/>)svg",
                     object.x - kOverhang, object.y - kOverhang, extent.width + 2 * kOverhang,
                     extent.height + 2 * kOverhang);
}

std::string label_svg(const Placement& object) {
  const int x = object.x;
  const int y = object.y + object.size + 3;
  const int width = digit_width(object.font_size);
  const int height = digit_height(object.font_size);
  return fmt::format(
      R"svg(<rect x="{}" y="{}" width="{}" height="{}" fill="white"/>)svg"
      R"svg(<g transform="translate({} {}) scale({:.7f} {:.7f})" fill="black">{}</g>)svg",
      x - 2, y - 1, width + 6, height + 6, x, y + 1 + height, width / kDigitAdvance,
      height / kDigitHeight, asset_body(fmt::format("digits/{}", object.digit)));
}

std::string card_svg(const Placement& card) {
  const Extent extent = extent_of(card);
  const int advance = letter_width(card.font_size);
  std::string svg = fmt::format(R"svg(<rect x="{}" y="{}" width="{}" height="{}" fill="{}"/>)svg",
                                card.x, card.y, extent.width, extent.height, hex(card.color));
  for (size_t line = 0; line < card.words.size(); ++line) {
    const int baseline = card.y + static_cast<int>(line + 1) * card.font_size;
    for (size_t i = 0; i < card.words[line].size(); ++i) {
      const auto letter = static_cast<char>(card.words[line][i] - 'A' + 'a');
      svg += fmt::format(R"svg(<g transform="translate({} {}) scale({:.7f})" fill="{}">{}</g>)svg",
                         card.x + 4 + static_cast<int>(i) * advance, baseline,
                         card.font_size / kUnitsPerEm, hex(card.outline),
                         asset_body(fmt::format("letters/{}", letter)));
    }
  }
  return svg;
}

}  // namespace

std::string sprite_svg(const Placement& object, const CellGrid& grid, const PixelBox& box) {
  const double cell = grid.cell();
  const double view_x = static_cast<double>(box.x) / grid.x_scale() - object.col * cell;
  const double view_y = static_cast<double>(box.y) / grid.y_scale() - object.row * cell;
  std::string body;
  if (object.on_card) body += backing_svg(object);
  if (!object.object.empty()) body += object_svg(object);
  if (object.digit != kNoDigit) body += label_svg(object);
  if (!object.words.empty()) body += card_svg(object);
  return fmt::format(R"svg(<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="{}")svg"
                     R"svg( viewBox="{:.4f} {:.4f} {:.4f} {:.4f}" preserveAspectRatio="none">)svg"
                     R"svg({}</svg>)svg",
                     box.width, box.height, view_x, view_y,
                     static_cast<double>(box.width) / grid.x_scale(),
                     static_cast<double>(box.height) / grid.y_scale(), body);
}

Sprite render_sprite(const Placement& object, const CellGrid& grid) {
  ensure_vips();
  Sprite sprite;
  sprite.box = box_around(object, grid);
  std::string svg = sprite_svg(object, grid, sprite.box);
  VipsImage* raw = nullptr;
  if (vips_svgload_buffer(svg.data(), svg.size(), &raw, nullptr) != 0) {
    throw_vips(ErrorCode::kUnavailable, "libvips cannot draw SVG");
  }
  const VipsImagePtr image(raw);
  PLATEAU_CHECK(image->Xsize == sprite.box.width && image->Ysize == sprite.box.height);
  PLATEAU_CHECK(image->Bands == 4 && image->BandFmt == VIPS_FORMAT_UCHAR);
  size_t size = 0;
  void* pixels = vips_image_write_to_memory(image.get(), &size);
  if (pixels == nullptr) throw_vips(ErrorCode::kInternal, "drawing an object failed");
  sprite.rgba.resize(size);
  std::memcpy(sprite.rgba.data(), pixels, size);
  g_free(pixels);
  sprite.painted = painted_box(sprite);
  return sprite;
}

void draw_sprite(const Sprite& sprite, RgbView band, int64_t band_top) {
  const int64_t first = std::max(sprite.box.y, band_top);
  const int64_t last = std::min(sprite.box.y + sprite.box.height, band_top + band.height);
  for (int64_t y = first; y < last; ++y) {
    const uint8_t* source = sprite.rgba.data() + (y - sprite.box.y) * sprite.box.width * 4;
    uint8_t* target = band.row(y - band_top) + sprite.box.x * 3;
    for (int64_t x = 0; x < sprite.box.width; ++x, source += 4, target += 3) {
      const int alpha = source[3];
      for (int c = 0; c < 3; ++c) {
        target[c] =
            static_cast<uint8_t>((source[c] * alpha + target[c] * (255 - alpha) + 127) / 255);
      }
    }
  }
}

}  // namespace plateau::eval

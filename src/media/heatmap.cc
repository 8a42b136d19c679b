#include "media/heatmap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "media/opened_image.h"
#include "media/resampler.h"
#include "media/row_source.h"
#include "media/spool.h"
#include "media/vips_handle.h"
#include "media/vips_session.h"

namespace plateau::media {
namespace {

constexpr int kMaxSide = 2048;
constexpr int kLegendHeight = 32;
constexpr int kLegendWidth = 360;    // narrower pictures go without
constexpr int kMinOutlinedCell = 5;  // pixels; smaller cells would be outline only
constexpr float kDropped = 0.25f;    // brightness of what no head kept

using Color = std::array<uint8_t, 3>;
constexpr Color kWarm = {255, 150, 30};
constexpr Color kLegendBackground = {18, 18, 18};
constexpr Color kLegendSample = {90, 170, 235};
constexpr Color kLegendText = {200, 200, 200};

/// Few heads keep any one token, so most shares are small: the root spreads them out.
float level_of(float share) { return std::sqrt(share); }

uint8_t mix(float from, float to, float t) {
  return static_cast<uint8_t>(std::lround(from + (to - from) * t));
}

/// Level 1 leaves the colour as it is; lower ones are darker and greyer.
void shade(uint8_t* pixel, float level) {
  if (level >= 1.0f) return;
  const float grey = 0.299f * pixel[0] + 0.587f * pixel[1] + 0.114f * pixel[2];
  const float brightness = kDropped + (1.0f - kDropped) * level;
  for (int i = 0; i < 3; ++i) pixel[i] = mix(brightness * grey, brightness * pixel[i], level);
}

/// The picture on a canvas with room for the legend below.
struct Canvas {
  int width = 0;
  int height = 0;  // of the picture
  int legend_height = 0;
  std::vector<uint8_t> pixels;  // [height + legend_height, width, 3]

  uint8_t* at(int x, int y) {
    return pixels.data() +
           (static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)) * 3;
  }
  void fill(int x, int y, int w, int h, const Color& color) {
    for (int row = y; row < y + h; ++row) {
      for (int col = x; col < x + w; ++col) std::copy(color.begin(), color.end(), at(col, row));
    }
  }
};

Canvas new_canvas(int width, int height) {
  const double scale = std::min({1.0, static_cast<double>(kMaxSide) / width,
                                 static_cast<double>(kMaxSide - kLegendHeight) / height});
  const auto scaled = [&](int side) {
    return std::max(1, static_cast<int>(std::lround(side * scale)));
  };
  Canvas canvas;
  canvas.width = scaled(width);
  canvas.height = scaled(height);
  canvas.legend_height = canvas.width >= kLegendWidth ? kLegendHeight : 0;
  canvas.pixels.resize(static_cast<size_t>(canvas.width) *
                       static_cast<size_t>(canvas.height + canvas.legend_height) * 3);
  return canvas;
}

Canvas read_picture(const std::string& path, const ImageLimits& limits) {
  OpenedImage opened = open_image(path, limits);
  std::unique_ptr<RowSource> rows = decode_rows(opened);
  if (opened.info.spooled) rows = spool_upright(*rows, opened.orientation, limits.spool_dir);
  Canvas canvas = new_canvas(rows->width(), rows->height());
  Resampler resampler(rows->width(), rows->height(), canvas.width, canvas.height);
  for (int y = 0; y < canvas.height; ++y) {
    while (!resampler.ready()) resampler.push(rows->next_row());
    resampler.pop(canvas.at(0, y));
  }
  return canvas;
}

/// Where the grid's cells lie on the canvas.
class CellGrid {
 public:
  CellGrid(const Heatmap& heatmap, const Canvas& canvas)
      : heatmap_(heatmap), width_(canvas.width), height_(canvas.height) {}

  int left(int col) const { return edge(col, heatmap_.n_cols, width_); }
  int top(int row) const { return edge(row, heatmap_.n_rows, height_); }
  int col_at(int x) const { return cell(x, heatmap_.n_cols, width_); }
  int row_at(int y) const { return cell(y, heatmap_.n_rows, height_); }
  /// Outside the grid nothing is kept.
  float level(int col, int row) const {
    if (col < 0 || row < 0 || col >= heatmap_.n_cols || row >= heatmap_.n_rows) return 0;
    return level_of(heatmap_.share[static_cast<size_t>(row) * static_cast<size_t>(heatmap_.n_cols) +
                                   static_cast<size_t>(col)]);
  }
  /// Width of outlines; 0: none.
  int outline() const {
    const int side = std::min(width_ / heatmap_.n_cols, height_ / heatmap_.n_rows);
    return side < kMinOutlinedCell ? 0 : std::clamp(side / 10, 1, 3);
  }

 private:
  /// First pixel of a cell; cell() is its inverse.
  static int edge(int index, int n_cells, int n_pixels) {
    return static_cast<int>((int64_t{index} * n_pixels + n_cells - 1) / n_cells);
  }
  static int cell(int pixel, int n_cells, int n_pixels) {
    return static_cast<int>(int64_t{pixel} * n_cells / n_pixels);
  }

  const Heatmap& heatmap_;
  int width_;
  int height_;
};

void shade_cells(const CellGrid& grid, Canvas& canvas) {
  for (int y = 0; y < canvas.height; ++y) {
    for (int x = 0; x < canvas.width; ++x) {
      shade(canvas.at(x, y), grid.level(grid.col_at(x), grid.row_at(y)));
    }
  }
}

void blend(uint8_t* pixel, const Color& color, float alpha) {
  for (size_t i = 0; i < 3; ++i) pixel[i] = mix(pixel[i], color[i], alpha);
}

/// A warm line just inside a cell that was kept more than its neighbour, stronger the more it was.
void outline_cells(const Heatmap& heatmap, const CellGrid& grid, Canvas& canvas) {
  const int line = grid.outline();
  if (line == 0) return;
  for (int row = 0; row < heatmap.n_rows; ++row) {
    for (int col = 0; col < heatmap.n_cols; ++col) {
      const float own = grid.level(col, row);
      const int x0 = grid.left(col);
      const int x1 = grid.left(col + 1);
      const int y0 = grid.top(row);
      const int y1 = grid.top(row + 1);
      const auto stroke = [&](float neighbour, int left, int right, int top, int bottom) {
        const float alpha = std::clamp(own - neighbour, 0.0f, 1.0f) * own;
        if (alpha < 0.05f) return;
        for (int y = top; y < bottom; ++y) {
          for (int x = left; x < right; ++x) blend(canvas.at(x, y), kWarm, alpha);
        }
      };
      stroke(grid.level(col, row - 1), x0, x1, y0, y0 + line);
      stroke(grid.level(col, row + 1), x0, x1, y1 - line, y1);
      stroke(grid.level(col - 1, row), x0, x0 + line, y0, y1);
      stroke(grid.level(col + 1, row), x1 - line, x1, y0, y1);
    }
  }
}

/// 3 x 5 pixels, rows from the top, the leftmost pixel in bit 2.
struct Glyph {
  char character;
  std::array<uint8_t, 5> rows;
};
constexpr Glyph kGlyphs[] = {
    {'0', {7, 5, 5, 5, 7}}, {'1', {2, 6, 2, 2, 7}}, {'%', {5, 1, 2, 4, 5}}};
constexpr int kGlyphScale = 2;
constexpr int kGlyphWidth = 3 * kGlyphScale;
constexpr int kGlyphHeight = 5 * kGlyphScale;
constexpr int kGlyphStep = kGlyphWidth + kGlyphScale;

void draw_text(Canvas& canvas, int x, int y, std::string_view text) {
  for (const char c : text) {
    for (const Glyph& glyph : kGlyphs) {
      if (glyph.character != c) continue;
      for (int row = 0; row < 5; ++row) {
        for (int col = 0; col < 3; ++col) {
          if ((glyph.rows[static_cast<size_t>(row)] >> (2 - col) & 1) == 0) continue;
          canvas.fill(x + col * kGlyphScale, y + row * kGlyphScale, kGlyphScale, kGlyphScale,
                      kLegendText);
        }
      }
    }
    x += kGlyphStep;
  }
}

/// A scale from "no head kept it" to "all heads kept it", drawn as the cells are.
void draw_legend(Canvas& canvas) {
  if (canvas.legend_height == 0) return;
  constexpr int kMargin = 10;
  constexpr int kBarWidth = 256;
  constexpr int kBarHeight = 14;
  canvas.fill(0, canvas.height, canvas.width, canvas.legend_height, kLegendBackground);
  const int text_y = canvas.height + (kLegendHeight - kGlyphHeight) / 2;
  const int bar_x = kMargin + 2 * kGlyphStep + kMargin;
  const int bar_y = canvas.height + (kLegendHeight - kBarHeight) / 2;
  draw_text(canvas, kMargin, text_y, "0%");
  draw_text(canvas, bar_x + kBarWidth + kMargin, text_y, "100%");
  canvas.fill(bar_x, bar_y, kBarWidth, kBarHeight, kLegendSample);
  for (int x = 0; x < kBarWidth; ++x) {
    const float level = level_of(static_cast<float>(x) / (kBarWidth - 1));
    for (int y = 0; y < kBarHeight; ++y) {
      shade(canvas.at(bar_x + x, bar_y + y), level);
      const bool is_edge = y == 0 || y == kBarHeight - 1;
      if (is_edge) blend(canvas.at(bar_x + x, bar_y + y), kWarm, level * level);
    }
  }
}

void save_png(Canvas& canvas, const std::string& path) {
  const VipsSession session;
  const VipsImagePtr image(vips_image_new_from_memory(
      canvas.pixels.data(), canvas.pixels.size(), canvas.width,
      canvas.height + canvas.legend_height, /*bands=*/3, VIPS_FORMAT_UCHAR));
  PLATEAU_CHECK(image != nullptr);
  if (vips_pngsave(image.get(), path.c_str(), "compression", 6, nullptr) != 0) {
    throw_error(ErrorCode::kUnavailable, "[--heatmap] cannot write '{}' ({})", path,
                session.message());
  }
}

void check(const Heatmap& heatmap) {
  const bool is_grid = heatmap.n_cols > 0 && heatmap.n_rows > 0;
  if (!is_grid || heatmap.share.size() !=
                      static_cast<size_t>(heatmap.n_cols) * static_cast<size_t>(heatmap.n_rows)) {
    throw_error(ErrorCode::kInvalidArgument,
                "[heatmap] expected a share for each of {} x {} cells, got {}", heatmap.n_cols,
                heatmap.n_rows, heatmap.share.size());
  }
}

/// Sums of float parts may leave [0, 1] by a little.
Heatmap clamped(Heatmap heatmap) {
  for (float& share : heatmap.share) {
    if (std::isnan(share)) {
      throw_error(ErrorCode::kInvalidArgument, "[heatmap] expected shares from 0 to 1, got NaN");
    }
    share = std::clamp(share, 0.0f, 1.0f);
  }
  return heatmap;
}

}  // namespace

void write_heatmap(const std::string& image_path, const std::string& png_path,
                   const Heatmap& heatmap, const ImageLimits& limits) {
  check(heatmap);
  const Heatmap shares = clamped(heatmap);
  Canvas canvas = read_picture(image_path, limits);
  const CellGrid grid(shares, canvas);
  shade_cells(grid, canvas);
  outline_cells(shares, grid, canvas);
  draw_legend(canvas);
  save_png(canvas, png_path);
}

}  // namespace plateau::media

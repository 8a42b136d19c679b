#include "eval/sprite.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace plateau::eval {
namespace {

TEST(Sprite, LiesInsideItsCellWithAMargin) {
  // Sizes whose cells have fractional borders, one of them much stretched.
  for (const auto& [width, height] : {std::pair{3840, 2160}, {1001, 703}, {230, 340}}) {
    const CellGrid grid(width, height, 112, 0, 0);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      for (const Placement& object : place_objects(grid, 6, seed)) {
        const Sprite sprite = render_sprite(object, grid);
        EXPECT_GE(sprite.painted.x, grid.left(object.col));
        EXPECT_GE(sprite.painted.y, grid.top(object.row));
        EXPECT_LE(sprite.painted.x + sprite.painted.width, grid.left(object.col + 1));
        EXPECT_LE(sprite.painted.y + sprite.painted.height, grid.top(object.row + 1));
      }
    }
  }
}

TEST(Sprite, HasTheTrainedSizeInTilePixels) {
  const CellGrid grid(1120, 1120, 112, 0, 0);
  for (const ObjectKind& kind : object_kinds()) {
    Placement object{kind.name, 4, 2, 3, 10, 12, 40, 30, kind.color, {0, 0, 0}};
    const Sprite sprite = render_sprite(object, grid);
    // The label ends 3 + height + 5 below the square; nothing else is lower.
    EXPECT_EQ(sprite.painted.y + sprite.painted.height, 3 * 112 + 12 + 40 + 3 + 22 + 5)
        << kind.name;
    EXPECT_GE(sprite.painted.width, 32) << kind.name;  // the moon lacks a quarter
    EXPECT_LE(sprite.painted.width, 45) << kind.name;  // the dog's ears stand out
  }
}

TEST(Sprite, LabelIsBlackOnWhite) {
  const CellGrid grid(112, 112, 112, 0, 0);
  const Placement object{"ring", 1, 0, 0, 20, 10, 40, 30, {150, 60, 200}, {0, 0, 0}};
  const Sprite sprite = render_sprite(object, grid);
  int n_black = 0;
  int n_white = 0;
  for (size_t i = 0; i < sprite.rgba.size(); i += 4) {
    if (sprite.rgba[i + 3] != 255) continue;
    n_black += sprite.rgba[i] == 0 && sprite.rgba[i + 1] == 0 && sprite.rgba[i + 2] == 0;
    n_white += sprite.rgba[i] == 255 && sprite.rgba[i + 1] == 255 && sprite.rgba[i + 2] == 255;
  }
  EXPECT_GT(n_black, 100);
  EXPECT_GT(n_white, 400);
}

TEST(Sprite, IsDrawnTheSameInOneBandOrTwo) {
  const CellGrid grid(112, 112, 112, 0, 0);
  const Sprite sprite = render_sprite(place_objects(grid, 1, 5).at(0), grid);
  std::vector<uint8_t> whole(112 * 112 * 3, 90);
  std::vector<uint8_t> halves = whole;
  draw_sprite(sprite, {whole.data(), 112, 112, 112 * 3}, 0);
  const RgbView canvas{halves.data(), 112, 112, 112 * 3};
  draw_sprite(sprite, canvas.part(0, 0, 112, 50), 0);
  draw_sprite(sprite, canvas.part(0, 50, 112, 62), 50);
  EXPECT_EQ(whole, halves);
}

}  // namespace
}  // namespace plateau::eval

#include "eval/sprite.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace plateau::eval {
namespace {

Placement small_object(std::string_view name, Rgb color) {
  Placement object;
  object.object = name;
  object.size = 40;
  object.font_size = 30;
  object.color = color;
  return object;
}

TEST(Sprite, LiesInsideItsCellWithAMargin) {
  // Sizes whose cells have fractional borders, one of them much stretched.
  for (const auto& [width, height] : {std::pair{3840, 2160}, {1001, 703}, {230, 340}}) {
    const CellGrid grid(width, height, 112, 0, 0);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      for (const Placement& object : place_objects(grid, ObjectVariety::kUsual, 6, 0, seed)) {
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
    Placement object = small_object(kind.name, kind.color);
    object.digit = 4;
    object.col = 2;
    object.row = 3;
    object.x = 10;
    object.y = 12;
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
  Placement object = small_object("ring", {150, 60, 200});
  object.digit = 1;
  object.x = 20;
  object.y = 10;
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

TEST(Sprite, DecoysStayInTheirCells) {
  const CellGrid grid(1001, 703, 112, 0, 0);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (const Placement& decoy : place_objects(grid, ObjectVariety::kColors, 3, 40, seed)) {
      const PixelBox box = render_sprite(decoy, grid).painted;
      EXPECT_GE(box.x, grid.left(decoy.col));
      EXPECT_GE(box.y, grid.top(decoy.row));
      EXPECT_LE(box.x + box.width, grid.left(decoy.col + 1));
      EXPECT_LE(box.y + box.height, grid.top(decoy.row + 1));
    }
  }
}

TEST(Sprite, CardShowsItsWords) {
  const CellGrid grid(112, 112, 112, 0, 0);
  Placement card;
  card.x = 20;
  card.y = 10;
  card.font_size = 14;
  card.color = {250, 240, 250};
  card.words = {"QUIZ", "EXIT"};
  const Sprite sprite = render_sprite(card, grid);
  EXPECT_EQ(sprite.painted.width, 4 * 8 + 8);
  EXPECT_EQ(sprite.painted.height, 2 * 14 + 6);
  int n_dark = 0;
  for (size_t i = 0; i < sprite.rgba.size(); i += 4) {
    n_dark += sprite.rgba[i + 3] == 255 && sprite.rgba[i] < 60;
  }
  EXPECT_GT(n_dark, 100);
}

TEST(Sprite, IsDrawnTheSameInOneBandOrTwo) {
  const CellGrid grid(112, 112, 112, 0, 0);
  const Sprite sprite =
      render_sprite(place_objects(grid, ObjectVariety::kUsual, 1, 0, 5).at(0), grid);
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

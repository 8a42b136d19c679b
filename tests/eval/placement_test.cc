#include "eval/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "eval_test_support.h"

namespace plateau::eval {
namespace {

TEST(Placement, EachObjectIsAloneInItsCellAndOfItsKind) {
  const CellGrid grid(340, 340, 112, 0, 0);  // 3x3 cells for 8 objects
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::set<std::pair<int, int>> cells;
    std::set<std::string_view> kinds;
    for (const Placement& object : place_objects(grid, ObjectVariety::kUsual, 8, 0, seed)) {
      cells.insert({object.col, object.row});
      kinds.insert(object.object);
      EXPECT_GE(object.x, 4);
      EXPECT_GE(object.y, 4);
      EXPECT_LE(object.x + std::max(object.size, digit_width(object.font_size)) + 6, 112);
      EXPECT_LE(object.y + object.size + digit_height(object.font_size) + 10, 112);
    }
    EXPECT_EQ(cells.size(), 8);
    EXPECT_EQ(kinds.size(), 8);
  }
}

TEST(Placement, ReachesEveryCellAndDigit) {
  const CellGrid grid(448, 336, 112, 0, 0);
  std::set<std::pair<int, int>> cells;
  std::set<int> digits;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Placement object = place_objects(grid, ObjectVariety::kUsual, 1, 0, seed).at(0);
    cells.insert({object.col, object.row});
    digits.insert(object.digit);
  }
  EXPECT_EQ(cells.size(), 12);
  EXPECT_EQ(digits.size(), 10);
}

TEST(Placement, RefusesTooManyObjects) {
  const CellGrid small(224, 224, 112, 0, 0);
  const CellGrid large(3840, 2160, 112, 0, 0);
  EXPECT_EQ(place_objects(small, ObjectVariety::kUsual, 4, 0, 1).size(), 4);
  EXPECT_EQ(code_of([&] { place_objects(small, ObjectVariety::kUsual, 5, 0, 1); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { place_objects(large, ObjectVariety::kUsual, 9, 0, 1); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { place_objects(large, ObjectVariety::kUsual, 0, 0, 1); }),
            ErrorCode::kInvalidArgument);
}

TEST(Placement, ColoursAndSizesTellObjectsApart) {
  const CellGrid grid(3840, 2160, 112, 0, 0);
  for (const int n_objects : {1, 64, 128}) {
    std::set<std::string> names;
    for (const Placement& object : place_objects(grid, ObjectVariety::kColors, n_objects, 0, 5)) {
      EXPECT_NE(object.digit, kNoDigit);
      EXPECT_TRUE(object.size_name == "small" ? object.size < 32 : object.size >= 48);
      names.insert(std::string(object.size_name) + std::string(object.color_name) +
                   std::string(object.object));
    }
    EXPECT_EQ(names.size(), static_cast<size_t>(n_objects));
  }
  EXPECT_EQ(place_objects(grid, ObjectVariety::kColors, 200, 0, 5).size(), 200);
}

double distance(const Rgb& a, const Rgb& b) { return std::hypot(a.r - b.r, a.g - b.g, a.b - b.b); }

TEST(Placement, ANamedColourIsNoOther) {
  const CellGrid grid(3840, 2160, 112, 0, 0);
  for (const Placement& object : place_objects(grid, ObjectVariety::kColors, 500, 0, 5)) {
    const auto named =
        std::find_if(object_colors().begin(), object_colors().end(),
                     [&](const NamedColor& color) { return color.name == object.color_name; });
    ASSERT_NE(named, object_colors().end());
    for (const NamedColor& other : object_colors()) {
      if (&other == &*named) continue;
      EXPECT_LT(2 * distance(object.color, named->color), distance(object.color, other.color))
          << object.color_name << ", not " << other.name;
    }
  }
}

TEST(Placement, DecoysAreNoNeedles) {
  const CellGrid grid(3840, 2160, 112, 0, 0);
  for (const ObjectVariety variety : {ObjectVariety::kUsual, ObjectVariety::kColors}) {
    const auto drawings = place_objects(grid, variety, 6, 90, 3);
    ASSERT_EQ(drawings.size(), 96);
    std::set<std::pair<int, int>> cells;
    int n_unnumbered = 0;
    int n_numbers = 0;
    int n_cards = 0;
    for (size_t i = 0; i < drawings.size(); ++i) {
      const Placement& drawing = drawings[i];
      cells.insert({drawing.col, drawing.row});
      if (i < 6) continue;
      EXPECT_TRUE(drawing.object.empty() || drawing.digit == kNoDigit);
      n_unnumbered += drawing.object.empty() ? 0 : 1;
      n_numbers += drawing.digit == kNoDigit ? 0 : 1;
      n_cards += drawing.words.empty() ? 0 : 1;
      for (size_t k = 0; k < 6; ++k) {
        EXPECT_FALSE(drawing.object == drawings[k].object &&
                     drawing.color_name == drawings[k].color_name &&
                     drawing.size_name == drawings[k].size_name);
      }
    }
    EXPECT_EQ(cells.size(), 96);
    EXPECT_GT(n_unnumbered, 10);
    EXPECT_GT(n_numbers, 10);
    EXPECT_GT(n_cards, 10);
  }
}

TEST(Placement, DecoysDoNotChangeHowObjectsLook) {
  const CellGrid grid(3840, 2160, 112, 0, 0);
  const auto alone = place_objects(grid, ObjectVariety::kColors, 5, 0, 9);
  const auto among = place_objects(grid, ObjectVariety::kColors, 5, 40, 9);
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(alone[i].object, among[i].object);
    EXPECT_EQ(alone[i].digit, among[i].digit);
    EXPECT_EQ(alone[i].size, among[i].size);
  }
}

TEST(Placement, RefusesTooManyDecoys) {
  const CellGrid grid(336, 336, 112, 0, 0);
  EXPECT_EQ(place_objects(grid, ObjectVariety::kColors, 4, 5, 1).size(), 9);
  EXPECT_EQ(code_of([&] { place_objects(grid, ObjectVariety::kColors, 4, 6, 1); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { place_objects(grid, ObjectVariety::kColors, 4, -1, 1); }),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace plateau::eval

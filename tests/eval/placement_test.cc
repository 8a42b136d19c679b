#include "eval/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "eval_test_support.h"

namespace plateau::eval {
namespace {

TEST(Placement, EachObjectIsAloneInItsCellAndOfItsKind) {
  const CellGrid grid(340, 340, 112, 0, 0);  // 3x3 cells for 8 objects
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::set<std::pair<int, int>> cells;
    std::set<std::string_view> kinds;
    for (const Placement& object : place_objects(grid, 8, seed)) {
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
    const Placement object = place_objects(grid, 1, seed).at(0);
    cells.insert({object.col, object.row});
    digits.insert(object.digit);
  }
  EXPECT_EQ(cells.size(), 12);
  EXPECT_EQ(digits.size(), 10);
}

TEST(Placement, RefusesTooManyObjects) {
  const CellGrid small(224, 224, 112, 0, 0);
  const CellGrid large(3840, 2160, 112, 0, 0);
  EXPECT_EQ(place_objects(small, 4, 1).size(), 4);
  EXPECT_EQ(code_of([&] { place_objects(small, 5, 1); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { place_objects(large, 9, 1); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { place_objects(large, 0, 1); }), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace plateau::eval

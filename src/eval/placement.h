// Where objects stand and how they look, in tile pixels, drawn from a seed. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "eval/canvas.h"
#include "eval/grid.h"

namespace plateau::eval {

/// The objects that the pico model knows, with their usual colours.
struct ObjectKind {
  std::string_view name;
  Rgb color;
};
std::span<const ObjectKind> object_kinds();

/// One object with its digit, wholly inside one cell. Lengths are in tile pixels, x and y from the
/// cell's upper left corner.
struct Placement {
  std::string_view object;
  int digit = 0;
  int col = 0;
  int row = 0;
  int x = 0;
  int y = 0;
  int size = 0;       // side of the object's square
  int font_size = 0;  // em of the digit
  Rgb color;
  Rgb outline;
};

/// The digit's advance and height at a font size, rounded as a hinted font has them.
int digit_width(int font_size);
int digit_height(int font_size);

/// Every object is of another kind and in another cell, in random order.
/// Errors: kInvalidArgument when n_objects is below 1 or above the kinds or cells there are.
std::vector<Placement> place_objects(const CellGrid& grid, int n_objects, uint64_t seed);

}  // namespace plateau::eval

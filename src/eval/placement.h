// Where objects stand and how they look, in tile pixels, drawn from a seed. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/canvas.h"
#include "eval/grid.h"

namespace plateau::eval {

/// The objects that the pico model knows, with their usual colours.
struct ObjectKind {
  std::string_view name;
  std::string_view plural;
  Rgb color;
};
std::span<const ObjectKind> object_kinds();

/// The colours of ObjectVariety::kColors.
struct NamedColor {
  std::string_view name;
  Rgb color;
};
std::span<const NamedColor> object_colors();

/// What tells objects apart.
enum class ObjectVariety {
  kUsual,   // by kind alone: each in its usual colour, of middling size ("the cat")
  kColors,  // by size, colour and kind ("the small red cat"); printed on a white card
};

inline constexpr int kNoDigit = -1;

/// One drawing, wholly inside one cell: an object over its digit, one of the two alone, or a card
/// with words. Lengths are in tile pixels, x and y from the cell's upper left corner.
struct Placement {
  std::string_view object;      // empty: none
  std::string_view color_name;  // empty where the colour is the kind's usual one
  std::string_view size_name;   // "small", "large"; empty: middling
  int digit = kNoDigit;
  int col = 0;
  int row = 0;
  int x = 0;
  int y = 0;
  int size = 0;       // side of the object's square; 0 without an object
  int font_size = 0;  // em of the digit or of the words
  Rgb color;
  Rgb outline;
  int outline_width = 1;
  bool on_card = false;                 // white behind the object and its digit
  std::vector<std::string_view> words;  // lines of capital letters; with them, no object and digit
};

/// The digit's advance and height at a font size, rounded as a hinted font has them.
int digit_width(int font_size);
int digit_height(int font_size);

/// Advance of each letter of a card.
int letter_width(int font_size);

/// Numbered objects first, then decoys: look-alikes without a number, numbers without an object and
/// cards with words. Every one is in another cell, in random order; objects of kUsual are each of
/// another kind, those of kColors differ in size, colour or kind up to 128.
/// Errors: kInvalidArgument when n_objects is below 1, n_decoys below 0, or there are too few kinds
/// or cells.
std::vector<Placement> place_objects(const CellGrid& grid, ObjectVariety variety, int n_objects,
                                     int n_decoys, uint64_t seed);

/// The same for drawings that follow each other in time: each stands in any cell. At most as many
/// as there are kinds, or 10000. Errors: kInvalidArgument as above, without the cells' part.
std::vector<Placement> place_in_turn(const CellGrid& grid, ObjectVariety variety, int n_objects,
                                     int n_decoys, uint64_t seed);

}  // namespace plateau::eval

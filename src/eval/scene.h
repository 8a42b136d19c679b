// Needle pictures: a large picture with small numbered objects, and what is mistaken for them, at
// known places.
//
// Memory: two rows of cells of the picture, plus the background photograph at its own size. The
// scene and the procedural backdrop are the same for a seed on every platform; the soft edges of
// objects and the bytes of the file are as fixed as the installed libvips and librsvg.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/placement.h"
#include "eval/sprite.h"

namespace plateau::eval {

struct SceneOptions {
  int64_t width = 3840;   // pixels
  int64_t height = 2160;  // pixels
  int cell = 112;         // side of the vision model's tile, in pixels
  int n_cols = 0;         // the tiler's grid; both 0: that of native detail
  int n_rows = 0;
  ObjectVariety variety = ObjectVariety::kUsual;
  int n_objects = 8;  // numbered; each in another cell; of kUsual, at most 8 of different kinds
  int n_decoys = 0;   // see place_objects
  uint64_t seed = 1;
  std::string background;  // path of a photograph; empty: procedural
};

/// One object, digit or card. The box holds all its pixels, label included.
struct Drawing {
  std::string object;  // empty: a digit or a card alone
  std::string color;   // empty: the kind's usual one
  std::string size;    // "small", "large"; empty: middling
  int digit = kNoDigit;
  std::string words;  // lines of a card, joined by spaces
  int64_t x = 0;      // picture pixels
  int64_t y = 0;
  int64_t w = 0;
  int64_t h = 0;
  int col = 0;  // the cell that wholly contains it
  int row = 0;
  double start_s = 0;  // of a film: there from this second until before the next
  double end_s = 0;
};

/// A picture or a film.
struct Scene {
  int64_t width = 0;
  int64_t height = 0;
  int n_cols = 0;
  int n_rows = 0;
  uint64_t seed = 0;
  int n_objects = 0;              // the first drawings: numbered objects
  std::vector<Drawing> drawings;  // then decoys; each part in random order
  double seconds = 0;             // of a film; 0: a picture
  int fps = 0;                    // of a film

  bool is_film() const { return seconds > 0; }
};

/// What a placed and rendered drawing is in the picture, without times.
Drawing drawing_of(const Placement& object, const Sprite& sprite);

/// Writes the picture to a file named *.png, *.jpg or *.jpeg, in place of what is there.
/// Errors: kInvalidArgument (an option, or the picture is too small), kNotFound (background or
/// folder), kUnsupported or kCorrupt (background), kUnavailable (cannot write or draw).
Scene write_scene(const SceneOptions& options, const std::string& path);

}  // namespace plateau::eval

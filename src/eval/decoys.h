// What looks like a numbered object and is none. Pure.
#pragma once

#include <span>

#include "eval/placement.h"
#include "eval/rng.h"

namespace plateau::eval {

/// Draws the position inside the cell, size and colours of an object and its digit.
/// REQUIRES: object names a kind; color_name and size_name are set or empty.
void choose_look(Placement& object, int cell, Rng& rng);

/// A third each: an object without a number that shares its kind with one of `objects` but not its
/// description, a number without an object, a card with words. Where no such object is left, a
/// number. The cell's column and row are the caller's to set.
Placement choose_decoy(std::span<const Placement> objects, ObjectVariety variety, int cell,
                       Rng& rng);

}  // namespace plateau::eval

// NumPy's .npy format, versions 1.0 to 3.0 (numpy/lib/format.py describes it): a header that is a
// Python literal, then the elements.
// Tested by tests/arrays/npy_test.cc.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "arrays/array.h"

namespace plateau::arrays {

bool is_npy(std::span<const std::byte> file);

/// The array that `file` holds; a view of it. `where` names the file in messages.
/// Errors: kCorrupt (not the format, truncated, surplus bytes), kUnsupported (Fortran order, big
/// endian, an element type that is not f16, f32, f64, i32 or i64).
Array parse_npy(const std::string& where, std::span<const std::byte> file);

}  // namespace plateau::arrays

// The safetensors format: 8 bytes of header length, a JSON header, then the tensors, back to back.
// Tested by tests/arrays/safetensors_test.cc.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "arrays/array.h"

namespace plateau::arrays {

/// The format has no magic number: true where a header length is followed by a '{'.
bool is_safetensors(std::span<const std::byte> file);

/// All tensors of `file`, by offset; views of it. Element types that are not read here are listed
/// with DType::kOther. `where` names the file in messages.
/// Errors: kCorrupt: not the format, truncated, or offsets that overlap, leave holes or do not
/// match the shape.
std::vector<Array> parse_safetensors(const std::string& where, std::span<const std::byte> file);

}  // namespace plateau::arrays

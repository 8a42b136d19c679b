// The name that a misspelt one was probably meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace plateau {

/// The candidate with the smallest edit distance; the first one on a tie. REQUIRES: not empty.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace plateau

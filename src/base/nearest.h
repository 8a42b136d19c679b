// The name that a misspelt one was probably meant to be.
// Tested by tests/base/nearest_test.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace plateau {

/// "; did you mean X?" for the candidate with the smallest edit distance, the first one on a tie;
/// "" where that is more than half of the name.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

}  // namespace plateau

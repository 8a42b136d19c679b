// Counts in messages for people: "1 picture", "2 pictures".
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace plateau {

/// The number with its noun, whose plural ends in an s.
inline std::string counted(int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

}  // namespace plateau

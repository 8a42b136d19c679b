// Messages to the user, on standard error.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <iterator>
#include <utility>

namespace plateau::cli {

/// As fmt::print(stderr, ...), but where standard error is closed or full the message is lost and
/// the work goes on: an answer does not depend on who listens to its progress.
template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  fmt::memory_buffer text;
  fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace plateau::cli

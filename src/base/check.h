// PLATEAU_CHECK turns a broken invariant into Error{kInternal}: the library never aborts.
// throw_error formats the message of any Error.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "plateau/error.h"

namespace plateau {

/// Throws Error{code} with a formatted message.
template <typename... Args>
[[noreturn]] void throw_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

namespace internal {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}

}  // namespace plateau

#define PLATEAU_CHECK(condition) \
  ((condition) ? void(0) : ::plateau::internal::check_failed(#condition, __FILE__, __LINE__))

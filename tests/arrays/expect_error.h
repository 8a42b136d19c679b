#pragma once

#include <functional>
#include <string>

#include "support/expect_error.h"

namespace plateau::arrays::testing {

inline void expect_error(ErrorCode code, const std::string& part,
                         const std::function<void()>& call) {
  test::expect_error(call, code, {part});
}

}  // namespace plateau::arrays::testing

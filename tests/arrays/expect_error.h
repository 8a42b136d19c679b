#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <string>

#include "plateau/error.h"

namespace plateau::arrays::testing {

inline void expect_error(ErrorCode code, const std::string& part,
                         const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "expected an error with '" << part << "'";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
  }
}

}  // namespace plateau::arrays::testing

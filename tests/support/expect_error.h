// An error that a test expects: its code and what its message must name.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plateau/error.h"

namespace plateau::test {

/// Fails unless `action` throws Error{code} whose message holds every one of `parts`.
template <typename Action>
void expect_error(Action&& action, ErrorCode code, const std::vector<std::string>& parts) {
  try {
    action();
    ADD_FAILURE() << "expected an error " << to_string(code) << ", nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
    for (const std::string& part : parts) EXPECT_THAT(error.what(), testing::HasSubstr(part));
  }
}

}  // namespace plateau::test

#include "base/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plateau {
namespace {

TEST(Check, ABrokenInvariantNamesItselfAndItsPlace) {
  try {
    PLATEAU_CHECK(1 + 1 == 3);
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    EXPECT_THAT(error.what(), testing::HasSubstr("1 + 1 == 3"));
    EXPECT_THAT(error.what(), testing::MatchesRegex("\\[check_test\\.cc:[0-9]+\\].*"));
  }
}

TEST(Check, EvaluatesTheConditionOnce) {
  int n = 0;
  PLATEAU_CHECK(++n == 1);
  EXPECT_EQ(n, 1);
}

TEST(Check, IsOneStatement) {
  bool reached = false;
  if (reached)
    PLATEAU_CHECK(false);
  else
    reached = true;
  EXPECT_TRUE(reached);
}

TEST(ThrowError, FormatsTheMessageAndKeepsTheCode) {
  try {
    throw_error(ErrorCode::kNotFound, "[{}] expected {}, got {}", "where", 3, "four");
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_STREQ(error.what(), "[where] expected 3, got four");
  }
}

TEST(ErrorCode, EveryCodeHasItsOwnStableName) {
  EXPECT_EQ(to_string(ErrorCode::kInvalidArgument), "invalid_argument");
  EXPECT_EQ(to_string(ErrorCode::kNotFound), "not_found");
  EXPECT_EQ(to_string(ErrorCode::kUnsupported), "unsupported");
  EXPECT_EQ(to_string(ErrorCode::kCorrupt), "corrupt");
  EXPECT_EQ(to_string(ErrorCode::kResourceExhausted), "resource_exhausted");
  EXPECT_EQ(to_string(ErrorCode::kCancelled), "cancelled");
  EXPECT_EQ(to_string(ErrorCode::kUnavailable), "unavailable");
  EXPECT_EQ(to_string(ErrorCode::kInternal), "internal");
}

}  // namespace
}  // namespace plateau

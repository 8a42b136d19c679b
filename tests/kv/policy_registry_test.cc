// Policies by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kv/policy.h"
#include "plateau/error.h"

namespace plateau::test {
namespace {

TEST(Registry, AnUnknownNameSuggestsTheNearest) {
  try {
    kv::make_policy("snap-kv", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean snapkv?"));
    EXPECT_THAT(error.what(), testing::HasSubstr("full"));
  }
}

TEST(Registry, OptionsOutOfRangeAreRefusedByName) {
  const auto expect_refused = [](const PolicyOptions& options, const char* option) {
    for (const kv::PolicyEntry& entry : kv::policies()) {
      try {
        kv::make_policy(entry.name, options);
        ADD_FAILURE() << entry.name << " " << option;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
        EXPECT_THAT(error.what(), testing::HasSubstr(option));
      }
    }
  };
  expect_refused({.window = 0}, "--window");
  expect_refused({.window = 1025}, "--window");
  expect_refused({.pool_kernel = 4}, "--kernel");
  expect_refused({.pool_kernel = 0}, "--kernel");
  expect_refused({.pool_kernel = -5}, "--kernel");
}

}  // namespace
}  // namespace plateau::test

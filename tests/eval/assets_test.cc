#include "eval/assets.h"

#include <gmock/gmock.h>

#include <string>

#include "eval/placement.h"

namespace plateau::eval {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Assets, HoldEveryObjectDigitAndLetter) {
  EXPECT_EQ(assets().size(), object_kinds().size() + 10 + 26);
  for (const ObjectKind& kind : object_kinds()) {
    EXPECT_THAT(std::string(asset_body(kind.name)), HasSubstr("/>")) << kind.name;
  }
  for (int digit = 0; digit < 10; ++digit) {
    EXPECT_THAT(std::string(asset_body("digits/" + std::to_string(digit))), HasSubstr("<path"));
  }
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    EXPECT_THAT(std::string(asset_body(std::string("letters/") + letter)), HasSubstr("<path"));
  }
}

TEST(Assets, BodiesInheritTheirColour) {
  for (const Asset& asset : assets()) {
    const std::string body(asset_body(asset.name));
    EXPECT_THAT(body, Not(HasSubstr("svg"))) << asset.name;
    EXPECT_THAT(body, Not(HasSubstr("#"))) << asset.name << " names a colour of its own";
  }
}

}  // namespace
}  // namespace plateau::eval

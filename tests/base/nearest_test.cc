#include "base/nearest.h"

#include <gtest/gtest.h>

namespace plateau {
namespace {

const std::string kNames[] = {"full", "snapkv", "keydiff"};

TEST(DidYouMean, NamesWhatIsNear) {
  EXPECT_EQ(did_you_mean("snapvk", kNames), "; did you mean snapkv?");
  EXPECT_EQ(did_you_mean("fulll", kNames), "; did you mean full?");
  EXPECT_EQ(did_you_mean("kydif", kNames), "; did you mean keydiff?");
}

TEST(DidYouMean, SaysNothingOfWhatIsFar) {
  EXPECT_EQ(did_you_mean("foo", kNames), "");
  EXPECT_EQ(did_you_mean("", kNames), "");
  EXPECT_EQ(did_you_mean("streaming-llm", kNames), "");
  EXPECT_EQ(did_you_mean("snapkv", {}), "");
}

}  // namespace
}  // namespace plateau

#include "cli/arguments.h"

#include <gmock/gmock.h>

namespace plateau::cli {
namespace {

std::vector<std::string> normalized(std::vector<const char*> words) {
  words.insert(words.begin(), "plateau");
  return normalized_arguments(static_cast<int>(words.size()), words.data());
}

TEST(Arguments, ThreeLetterNamesOfLlamaCppBecomeLong) {
  EXPECT_THAT(normalized({"run", "-ctk", "q8_0", "-ctv=f16", "-ngl", "0"}),
              testing::ElementsAre("run", "--cache-type-k", "q8_0", "--cache-type-v=f16",
                                   "--n-gpu-layers", "0"));
}

TEST(Arguments, OthersStayAsTheyAre) {
  EXPECT_THAT(normalized({"-ctx", "-c", "ctk", "--ctk", ""}),
              testing::ElementsAre("-ctx", "-c", "ctk", "--ctk", ""));
}

}  // namespace
}  // namespace plateau::cli

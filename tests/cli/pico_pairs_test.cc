// The bundled pairs answer what they were trained for, also under a budget. The bounds leave room
// for a retrained pair, not for one that guesses.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/plateau_process.h"

namespace plateau::cli::testing {
namespace {

constexpr int kPictures = 20;

class PicoPairs : public ::testing::TestWithParam<std::string> {
 protected:
  /// Share of right answers by setting.
  std::map<std::string, double> accuracy(const std::vector<std::string>& needle_options,
                                         const std::vector<std::string>& eval_options) {
    const std::string set = dir_.file("set"), results = dir_.file("results.jsonl");
    std::vector<std::string> make = {"needle",
                                     "--out",
                                     set,
                                     "--width",
                                     "672",
                                     "--height",
                                     "448",
                                     "--seed",
                                     "41",
                                     "--count",
                                     std::to_string(kPictures)};
    make.insert(make.end(), needle_options.begin(), needle_options.end());
    EXPECT_EQ(plateau(make).exit_code, 0);
    std::vector<std::string> eval = {"eval",
                                     "--set",
                                     set,
                                     "-m",
                                     pico_text(GetParam()),
                                     "--mmproj",
                                     pico_mmproj(GetParam()),
                                     "-t",
                                     "1",
                                     "--out",
                                     results};
    eval.insert(eval.end(), eval_options.begin(), eval_options.end());
    const Finished finished = plateau(eval);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    std::map<std::string, double> shares;
    for (const nlohmann::json& result : json_lines(media::testing::read_file(results))) {
      if (result["type"] != "result") continue;
      shares[result["setting"]] += result["right"] ? 1.0 / kPictures : 0;
    }
    return shares;
  }

 private:
  TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(Families, PicoPairs, ::testing::Values("internvl", "qwen2.5vl"),
                         [](const auto& family) {
                           return family.param == "internvl" ? "internvl" : "qwen25vl";
                         });

TEST_P(PicoPairs, ReadTheNumberOnAnObject) {
  const auto shares =
      accuracy({}, {"--kv-budget", "full,64", "--block", "64", "--policy", "snapkv"});
  ASSERT_EQ(shares.size(), 2U);
  for (const auto& [setting, share] : shares) EXPECT_GE(share, 0.8) << setting;
}

TEST_P(PicoPairs, TellObjectsApartByColourAndSize) {
  const auto shares =
      accuracy({"--colors", "--objects", "8", "--distractors", "6"}, {"--kv-budget", "full"});
  ASSERT_EQ(shares.size(), 1U);
  EXPECT_GE(shares.at("full"), 0.65);
}

}  // namespace
}  // namespace plateau::cli::testing

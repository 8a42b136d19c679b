#include "cli/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "plateau/error.h"
#include "support/temp_dir.h"

namespace plateau::cli {
namespace {

using ::testing::HasSubstr;

class OutputFiles : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_.file(name); }
  std::string made(const std::string& name) const {
    std::ofstream(file(name)) << "precious";
    return file(name);
  }
  static void expect_refused(ErrorCode code, const std::string& part,
                             const std::vector<OutputFile>& outputs,
                             const std::vector<std::string>& inputs) {
    try {
      check_outputs(outputs, inputs);
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }

  test::TempDir folder_;
};

TEST_F(OutputFiles, AnInputIsNeverAnOutput) {
  const std::string picture = made("picture.jpg");
  std::filesystem::create_symlink(picture, file("link.jpg"));
  for (const std::string& output : {picture, file("link.jpg")}) {
    expect_refused(ErrorCode::kInvalidArgument, "--trace-json", {{"--trace-json", output}},
                   {"", picture});
  }
  std::string text;
  std::ifstream(picture) >> text;
  EXPECT_EQ(text, "precious");
}

TEST_F(OutputFiles, TwoOutputsNeedTwoFiles) {
  expect_refused(ErrorCode::kInvalidArgument, "--stats-json",
                 {{"--stats-json", file("a")}, {"--trace-json", file("a")}}, {});
  EXPECT_NO_THROW(check_outputs({{"--stats-json", file("a")}, {"--trace-json", file("b")}}, {}));
}

TEST_F(OutputFiles, NothingIsMadeByChecking) {
  EXPECT_NO_THROW(check_outputs({{"--heatmap", file("new.png")}, {"--stats-json", ""}}, {}));
  EXPECT_FALSE(std::filesystem::exists(file("new.png")));
}

TEST_F(OutputFiles, FoldersAndMissingFoldersAreRefused) {
  const auto unavailable = [&](const std::string& path, const std::string& reason) {
    expect_refused(ErrorCode::kUnavailable, "writing: " + reason, {{"--heatmap", path}}, {});
  };
  unavailable(file(""), "Is a directory");
  unavailable(file("none/x.png"), "No such file or directory");
  unavailable(made("picture.jpg") + "/x.png", "Not a directory");
}

TEST_F(OutputFiles, StandardOutputOnlyWhereItMayBe) {
  EXPECT_NO_THROW(check_outputs({{"--stats-json", "-", /*may_be_stdout=*/true}}, {}));
  expect_refused(ErrorCode::kInvalidArgument, "got -", {{"--trace-json", "-"}}, {});
}

}  // namespace
}  // namespace plateau::cli

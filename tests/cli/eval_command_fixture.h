// Small needle sets, and plateau eval over them.
#pragma once

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/plateau_process.h"

namespace plateau::cli::testing {

using nlohmann::json;

/// Four questions about two pictures of 4 x 2 tiles.
class EvalCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = std::make_unique<TempDir>();
    const Finished made =
        plateau({"needle", "--out", set(), "--width", "448", "--height", "224", "--count", "2",
                 "--objects", "3", "--questions", "2", "--format", "png", "--seed", "5"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  static void TearDownTestSuite() { dir_.reset(); }

  static std::string set() { return dir_->file("set"); }
  std::string out() const { return own_.file("results.jsonl"); }

  static Finished eval(const std::string& set, const std::vector<std::string>& arguments,
                       const StartOptions& options = {}) {
    std::vector<std::string> words = {"eval",     "--set",       set,  "-m", pico_text(),
                                      "--mmproj", pico_mmproj(), "-t", "1"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return plateau(words, options);
  }

  static std::vector<json> lines_of(const std::string& path) {
    return json_lines(media::testing::read_file(path));
  }
  static std::vector<json> of_type(const std::vector<json>& lines, const std::string& type) {
    std::vector<json> result;
    for (const json& line : lines) {
      if (line.at("type") == type) result.push_back(line);
    }
    return result;
  }
  /// What does not depend on the clock, the memory or the order of work, by pair.
  static std::map<std::string, json> answers_of(const std::string& path) {
    std::map<std::string, json> answers;
    for (json line : of_type(lines_of(path), "result")) {
      for (const char* field :
           {"peak_anon_bytes", "encoded_tiles", "encode_ms", "prefill_ms", "ttft_ms", "total_ms"}) {
        line.erase(field);
      }
      const std::string pair =
          line["id"].get<std::string>() + " " + line["setting"].get<std::string>();
      EXPECT_TRUE(answers.emplace(pair, line).second) << pair << " stands twice";
    }
    return answers;
  }
  std::string write_own(const std::string& name, const std::string& text) const {
    return own_.write(name, text);
  }

  TempDir own_;

 private:
  inline static std::unique_ptr<TempDir> dir_;
};

inline const std::vector<std::string> kGrid = {
    "--policy", "snapkv,random,post-prefill-snapkv", "--kv-budget", "full,28", "--resize", "12"};

inline std::vector<std::string> with(std::vector<std::string> first,
                                     const std::vector<std::string>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

}  // namespace plateau::cli::testing

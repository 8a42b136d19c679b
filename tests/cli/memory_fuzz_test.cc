// Random models, pictures and bounds: a request stays below --memory, or is refused before any
// weights are loaded.
#include <gtest/gtest.h>

#include <random>

#include "cli/plateau_process.h"
#include "support/synth.h"

namespace plateau::cli::testing {
namespace {

constexpr int kRequests = 100;

class MemoryFuzz : public ::testing::Test {
 protected:
  MemoryFuzz() {
    test::write_tiny_text({.arch = "qwen2vl", .n_layer = 3}, dir_.file("qwen.gguf"));
    test::write_tiny_qwen_vision({}, dir_.file("qwen-mmproj.gguf"));
    test::write_tiny_text({.arch = "qwen2", .n_layer = 5, .n_head_kv = 1, .type = GGML_TYPE_Q8_0},
                          dir_.file("wide.gguf"));
    test::write_tiny_vision({.tile = 56, .scale_factor = 2}, dir_.file("wide-mmproj.gguf"));
    pairs_ = {{pico_text(), pico_mmproj()},
              {dir_.file("qwen.gguf"), dir_.file("qwen-mmproj.gguf")},
              {dir_.file("wide.gguf"), dir_.file("wide-mmproj.gguf")}};
    for (const auto& [width, height] :
         {std::pair{112, 112}, {448, 448}, {1344, 560}, {336, 1680}, {3360, 112}}) {
      pictures_.push_back(dir_.file(std::to_string(pictures_.size())));
      media::testing::save(media::testing::noise(width, height), pictures_.back(), ".png");
    }
  }

  template <typename T>
  const T& pick(const std::vector<T>& choices) {
    return choices[rng_() % choices.size()];
  }

  std::vector<std::string> random_request() {
    const auto& [text, mmproj] = pick(pairs_);
    std::vector<std::string> request = {
        "-m",       text,  "--mmproj", mmproj, "-t", "1",
        "--device", "CPU", "-p",       "hi",   "-n", pick<std::string>({"1", "8", "40"})};
    const int n_pictures = static_cast<int>(rng_() % 3);
    for (int i = 0; i < n_pictures; ++i) {
      request.insert(request.end(), {"--image", pick(pictures_)});
    }
    const std::vector<std::vector<std::string>> extras = {
        {},
        {"--kv-budget", "64"},
        {"--kv-budget", "300", "--policy", "keydiff"},
        {"--kv-budget", "200", "--block", "33"},
        {"--block", "16"},
        {"-ctk", "f32", "-ctv", "f32"},
        {"--kv-budget", "128", "--policy", "post-prefill-snapkv"}};
    const std::vector<std::string>& extra = pick(extras);
    request.insert(request.end(), extra.begin(), extra.end());
    return request;
  }

  std::mt19937 rng_{20261130};  // the same everywhere, unlike the distributions
  TempDir dir_;
  std::vector<std::pair<std::string, std::string>> pairs_;
  std::vector<std::string> pictures_;
};

TEST_F(MemoryFuzz, EachRequestStaysBelowTheBoundOrIsRefused) {
  int n_answered = 0;
  int n_refused = 0;
  for (int i = 0; i < kRequests; ++i) {
    std::vector<std::string> arguments = random_request();
    const int64_t bound = int64_t{8'000'000} + static_cast<int64_t>(rng_() % 30'000'000);
    arguments.insert(arguments.begin(), "run");
    arguments.insert(arguments.end(), {"--memory", std::to_string(bound), "--stats-json", "-"});
    std::string said;
    for (const std::string& argument : arguments) said += argument + " ";
    SCOPED_TRACE(said);
    const Finished finished = plateau(arguments);
    if (finished.exit_code == 4) {
      ++n_refused;
      EXPECT_NE(finished.err.find("[--memory] expected at least"), std::string::npos)
          << finished.err;
      EXPECT_EQ(finished.out, "");
      continue;
    }
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    ++n_answered;
    const auto stats = nlohmann::json::parse(finished.out.substr(finished.out.find("{\n")));
    EXPECT_LE(stats["plan_bytes"]["total"].get<int64_t>(), bound) << stats;
    EXPECT_LE(stats["measured_bytes"]["total"].get<int64_t>(), bound) << stats;
  }
  // Neither is the rule.
  EXPECT_GT(n_answered, kRequests / 5);
  EXPECT_GT(n_refused, kRequests / 20);
}

}  // namespace
}  // namespace plateau::cli::testing

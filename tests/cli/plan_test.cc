// The memory plan: printed before work, kept while working, and made to fit a bound.
#include <gmock/gmock.h>

#include <filesystem>

#include "cli/plateau_process.h"
#include "support/synth.h"

namespace plateau::cli::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

nlohmann::json plan_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"plan", "-m", pico_text(), "--mmproj", pico_mmproj(), "-t",
                                       "1", "--device", "CPU", "--json"});
  const Finished finished = plateau(arguments);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  return nlohmann::json::parse(finished.out);
}

struct Case {
  const char* name;
  int width;
  int height;
  std::vector<std::string> options;
};

class MemoryPlan : public ::testing::TestWithParam<Case> {};

TEST_P(MemoryPlan, HoldsWhatIsMeasuredAndNotMuchMore) {
  const TempDir dir;
  const Needle needle = make_needle(dir, GetParam().width, GetParam().height);
  std::vector<std::string> arguments = {"--image", needle.path, "-p", needle.question};
  arguments.insert(arguments.end(), GetParam().options.begin(), GetParam().options.end());
  const auto stats = stats_of(arguments);
  const auto planned = stats["plan_bytes"]["total"].get<double>();
  const auto measured = stats["measured_bytes"]["total"].get<double>();
  EXPECT_LE(measured, planned) << stats["plan_bytes"] << stats["measured_bytes"];
  EXPECT_LE(planned, 1.15 * measured) << stats["plan_bytes"] << stats["measured_bytes"];
  for (const char* part : {"weights", "kv", "compute", "encoder"}) {
    const double projector =
        std::string(part) == "weights" ? stats["plan_bytes"]["projector"].get<double>() : 0.0;
    EXPECT_LE(stats["measured_bytes"][part].get<double>(),
              stats["plan_bytes"][part].get<double>() + projector)
        << part;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, MemoryPlan,
    ::testing::Values(
        Case{"Small", 448, 224, {}}, Case{"Exact4k", 3840, 2160, {}},
        Case{"Budget4k", 3840, 2160, {"--kv-budget", "256"}},
        Case{"SmallBlocks", 3840, 2160, {"--kv-budget", "512", "--block", "64"}},
        Case{"Strict", 1792, 1792, {"--kv-budget", "256", "--strict"}},
        Case{"KeyDiff", 3840, 2160, {"--kv-budget", "1024", "--policy", "keydiff"}},
        Case{"PostPrefill", 1792, 1792, {"--kv-budget", "128", "--policy", "post-prefill-snapkv"}},
        Case{"Wide", 20000, 112, {"--max-tiles", "12"}},
        Case{"F32Cache", 3840, 2160, {"-ctk", "f32", "-ctv", "f32"}}),
    [](const auto& tested) { return tested.param.name; });

// llama.cpp's library holds pictures whole: the larger, the more of the total they are.
TEST(MemoryPlan, HoldsWhatLibmtmdTakes) {
  const TempDir dir;
  const std::string text = dir.file("text.gguf"), mmproj = dir.file("mmproj.gguf");
  test::write_tiny_text({.arch = "qwen2"}, text);
  test::write_tiny_llava({}, mmproj);
  for (const auto& [width, height] : {std::pair(800, 600), {3840, 2160}, {7000, 5000}}) {
    SCOPED_TRACE(width);
    const Needle needle = make_needle(dir, width, height);
    const Finished finished =
        plateau({"run", "-m", text, "--mmproj", mmproj, "-t", "1", "--device", "CPU", "--image",
                 needle.path, "-p", "hi", "-n", "2", "--stats-json", dir.file("stats.json")});
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    const auto stats = nlohmann::json::parse(media::testing::read_file(dir.file("stats.json")));
    EXPECT_LE(stats["measured_bytes"]["total"], stats["plan_bytes"]["total"])
        << stats["plan_bytes"] << stats["measured_bytes"];
  }
}

TEST(Plan, SaysWhatRunThenDoes) {
  const TempDir dir;
  const Needle needle = make_needle(dir);
  const std::vector<std::string> arguments = {"--image",       needle.path,   "-p",
                                              needle.question, "--kv-budget", "96"};
  const auto plan = plan_of(arguments);
  const auto stats = stats_of(arguments);
  for (const char* field : {"prompt_tokens", "text_tokens", "visual_tokens", "blocks", "kv_budget",
                            "kv_arena_tokens", "notes"}) {
    EXPECT_EQ(plan[field], stats[field]) << field;
  }
  EXPECT_EQ(plan["positions"], plan["prompt_tokens"]);
  int64_t total = 0;
  for (const auto& part : plan["memory"]) total += part["bytes"].get<int64_t>();
  EXPECT_EQ(plan["total_bytes"], total);
}

TEST(Plan, TableNamesEveryPart) {
  const TempDir dir;
  const Needle needle = make_needle(dir);
  const Finished finished = plateau(
      {"plan", "-m", pico_text(), "--mmproj", pico_mmproj(), "--image", needle.path, "-p", "hi"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.err, IsEmpty());
  for (const char* part : {"weights", "projector", "kv", "compute", "encoder", "media", "host",
                           "runtime", "total", "positions", "KV cells"}) {
    EXPECT_THAT(finished.out, HasSubstr(part));
  }
}

TEST(Plan, DoesNotReadPixels) {
  const TempDir dir;
  const Needle needle = make_needle(dir, 896, 448);
  std::filesystem::resize_file(needle.path, std::filesystem::file_size(needle.path) / 2);
  EXPECT_EQ(plan_of({"--image", needle.path, "-p", "hi"})["visual_tokens"], 132);
}

TEST(Memory, BoundIsKeptByConcessionsThatAreSaid) {
  const TempDir dir;
  const Needle needle = make_needle(dir, 3840, 2160);
  const std::vector<std::string> request = {"--image", needle.path, "-p", needle.question};
  const double free_choice = plan_of(request)["total_bytes"].get<double>();
  for (const double share : {1.01, 0.97, 0.94}) {
    const auto bound = static_cast<int64_t>(share * free_choice);
    std::vector<std::string> arguments = request;
    arguments.insert(arguments.end(), {"--memory", std::to_string(bound)});
    const auto stats = stats_of(arguments);
    EXPECT_LE(stats["plan_bytes"]["total"], bound);
    EXPECT_LE(stats["measured_bytes"]["total"], bound);
    EXPECT_EQ(stats["concessions"].empty(), share > 1) << stats["concessions"];
  }
}

TEST(Memory, ANamedBudgetAndBlockAreNotTouched) {
  const TempDir dir;
  const Needle needle = make_needle(dir, 3840, 2160);
  const Finished finished =
      plateau(pico_run({"--image", needle.path, "-p", "hi", "--kv-budget", "2048", "--block",
                        "1024", "--encoder-batch", "16", "--memory", "20MiB"}));
  EXPECT_EQ(finished.exit_code, 4);
  EXPECT_THAT(finished.out, IsEmpty());
  EXPECT_THAT(finished.err, HasSubstr("[--memory] expected at least"));
  EXPECT_THAT(finished.err, HasSubstr("the largest part is"));
  EXPECT_THAT(finished.err, HasSubstr("; try "));
}

TEST(Memory, RefusesWhatIsNoSize) {
  for (const char* text : {"lots", "0", "-1GiB", ""}) {
    const Finished finished = plateau(pico_run({"-p", "hi", "--memory", text}));
    EXPECT_EQ(finished.exit_code, 2) << text;
    EXPECT_THAT(finished.err, HasSubstr("--memory")) << text;
  }
}

}  // namespace
}  // namespace plateau::cli::testing

// Wrong options, missing files and swapped models: the exit code and what the message names.
#include <gmock/gmock.h>

#include <sys/stat.h>

#include <fstream>

#include "cli/plateau_process.h"

namespace plateau::cli::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kCannotWrite = 1;
constexpr int kUsage = 2;
constexpr int kBadInput = 3;

struct Case {
  const char* name;
  std::vector<std::string> arguments;
  int exit_code;
  const char* message;
};

void PrintTo(const Case& tested, std::ostream* out) { *out << tested.name; }

class WrongUse : public ::testing::TestWithParam<Case> {};

TEST_P(WrongUse, IsNamed) {
  const Finished finished = plateau(GetParam().arguments);
  EXPECT_EQ(finished.exit_code, GetParam().exit_code) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr(GetParam().message));
  EXPECT_THAT(finished.out, IsEmpty());
}

std::vector<Case> option_cases() {
  const auto asked = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"-p", "hi"});
    return pico_run(more);
  };
  return {
      {"NoCommand", {}, kUsage, "subcommand is required"},
      {"UnknownCommand", {"fly"}, kUsage, "'fly'"},
      {"UnknownOption", asked({"--nope"}), kUsage, "--nope"},
      {"ExtraWord", asked({"extra"}), kUsage, "extra"},
      {"MissingValue", pico_run({"-p"}), kUsage, "--prompt"},
      {"NoModel", {"run", "-p", "hi"}, kUsage, "--model"},
      {"NoQuestion", pico_run({}), kUsage, "question"},
      {"EmptyQuestion", pico_run({"-p", ""}), kUsage, "question"},
      {"TwoQuestions", asked({"-p", "ho"}), kUsage, "--prompt"},
      {"QuestionAndFile", asked({"-f", "-"}), kUsage, "--file"},
      {"NoTokens", asked({"-n", "0"}), kUsage, "[-n]"},
      {"NegativeTokens", asked({"-n", "-5"}), kUsage, "[-n]"},
      {"WordForNumber", asked({"-n", "many"}), kUsage, "--n-predict"},
      {"TooManyTokens", asked({"-n", "2000000000"}), kUsage, "[-n]"},
      {"NegativeTemperature", asked({"--temp", "-1"}), kUsage, "[--temp]"},
      {"TemperatureNan", asked({"--temp", "nan"}), kUsage, "[--temp]"},
      {"TopPAboveOne", asked({"--top-p", "7"}), kUsage, "[--top-p]"},
      {"NegativeTopK", asked({"--top-k", "-3"}), kUsage, "[--top-k]"},
      {"NegativeBlock", asked({"--block", "-1"}), kUsage, "[--block]"},
      {"HugeBlock", asked({"--block", "65537"}), kUsage, "[--block]"},
      {"NoBudget", asked({"--kv-budget", "0"}), kUsage, "[--kv-budget]"},
      {"BudgetBelowTheQuestion", asked({"--kv-budget", "1"}), kUsage, "[--kv-budget]"},
      {"WordForBudget", asked({"--kv-budget", "much"}), kUsage, "[--kv-budget]"},
      {"UnknownPolicy", asked({"--policy", "bogus"}), kUsage, "bogus"},
      {"NegativeThreads", {"run", "-m", pico_text(), "-p", "hi", "-t", "-1"}, kUsage, "[-t]"},
      {"NegativeEncoderBatch", asked({"--encoder-batch", "-1"}), kUsage, "[--encoder-batch]"},
      {"NegativeTiles", asked({"--max-tiles", "-1"}), kUsage, "[--max-tiles]"},
      {"UnknownCacheType", asked({"-ctk", "q4_0"}), kUsage, "--cache-type-k"},
      {"CacheTypeByNumber", asked({"-ctv", "1"}), kUsage, "--cache-type-v"},
      {"UnknownDevice", asked({"--device", "abacus"}), kUsage, "[--device]"},
      {"NegativeLayers", asked({"-ngl", "-7"}), kUsage, "-1 or a number of layers"},
      {"NegativeSeed", asked({"--seed", "-1"}), kUsage, "a whole number from 0 on"},
      {"NegativeNeedleSeed", {"needle", "--out", "x", "--seed", "-1"}, kUsage, "--seed"},
      {"TimeOfAPicture", {"needle", "--out", "x", "--kinds", "when"}, kUsage, "--film"},
      {"PictureFormatOfAFilm",
       {"needle", "--out", "x", "--film", "--format", "jpg"},
       kUsage,
       "mp4"},
      {"LengthOfAPicture", {"needle", "--out", "x", "--seconds", "9"}, kUsage, "--film"},
      {"RateOfAPicture", {"needle", "--out", "x", "--fps", "2"}, kUsage, "--film"},
      {"MomentInAPicture", {"needle", "--out", "x", "--needle-seconds", "2"}, kUsage, "--film"},
      {"FirstOfOneObject",
       {"needle", "--out", "/nonexistent/x", "--film", "--kinds", "first"},
       kUsage,
       "--objects"},
      {"NoFilmLength", {"needle", "--out", "x", "--film", "--seconds", "0"}, kUsage, "[--seconds]"},
      {"NoQuestionFile", pico_run({"-f", "/nonexistent/q.txt"}), kBadInput, "q.txt"},
      {"FolderAsQuestion", pico_run({"-f", "/"}), kBadInput, "[/]"},
  };
}
INSTANTIATE_TEST_SUITE_P(Options, WrongUse, ::testing::ValuesIn(option_cases()),
                         [](const auto& tested) { return tested.param.name; });

std::vector<Case> output_cases() {
  const std::string text = pico_text();
  const auto asked = [](const char* option, const char* path) {
    return pico_run({"-p", "hi", "-n", "2", option, path});
  };
  const char* missing = "/nonexistent/x] cannot be opened for writing: No such file or directory";
  const char* folder = "[/] cannot be opened for writing: Is a directory";
  return {
      {"NoStatsFolder", asked("--stats-json", "/nonexistent/x"), kCannotWrite, missing},
      {"StatsInAFolder", asked("--stats-json", "/"), kCannotWrite, folder},
      {"NoTraceFolder", asked("--trace-json", "/nonexistent/x"), kCannotWrite, missing},
      {"TraceInAFolder", asked("--trace-json", "/"), kCannotWrite, folder},
      {"BenchInAFolder", {"bench", "-m", text, "--out", "/"}, kCannotWrite, folder},
      {"NoBenchFolder", {"bench", "-m", text, "--out", "/nonexistent/x"}, kCannotWrite, missing},
      {"ReportInAFolder", {"report", "--out", "/", text}, kCannotWrite, folder},
      {"NoReportFolder", {"report", "--out", "/nonexistent/x", text}, kCannotWrite, missing},
  };
}
INSTANTIATE_TEST_SUITE_P(Outputs, WrongUse, ::testing::ValuesIn(output_cases()),
                         [](const auto& tested) { return tested.param.name; });

std::vector<Case> model_cases() {
  const std::string text = pico_text();
  const std::string mmproj = pico_mmproj();
  return {
      {"NoTextModel", {"run", "-m", "none.gguf", "-p", "hi"}, kBadInput, "none.gguf"},
      {"NoMmproj", {"run", "-m", text, "--mmproj", "none.gguf", "-p", "hi"}, kBadInput, "none"},
      {"PictureWithoutMmproj", {"run", "-m", text, "--image", "x"}, kUsage, "--mmproj"},
      {"Swapped", {"run", "-m", mmproj, "--mmproj", text, "-p", "hi"}, kBadInput, "projector"},
      {"TextTwice", {"run", "-m", text, "--mmproj", text, "-p", "hi"}, kBadInput, "text.gguf"},
      {"FolderAsModel", {"run", "-m", "/", "-p", "hi"}, kBadInput, "[/]"},
      {"InfoOfNothing", {"info", "none.gguf"}, kBadInput, "none.gguf"},
  };
}
INSTANTIATE_TEST_SUITE_P(Models, WrongUse, ::testing::ValuesIn(model_cases()),
                         [](const auto& tested) { return tested.param.name; });

TEST(ModelFile, CutShortIsNamedAtEveryLength) {
  const TempDir dir;
  const std::string whole = media::testing::read_file(pico_text());
  for (const size_t length :
       {size_t{0}, size_t{10}, size_t{1000}, whole.size() / 2, whole.size() - 1}) {
    const std::string path = dir.write("cut.gguf", whole.substr(0, length));
    const Finished finished = plateau({"run", "-m", path, "-p", "hi"});
    EXPECT_EQ(finished.exit_code, kBadInput) << length << ": " << finished.err;
    EXPECT_THAT(finished.err, HasSubstr("cut.gguf"));
    EXPECT_THAT(finished.out, IsEmpty());
  }
}

TEST(Streams, AFullDiscIsAnError) {
  const std::string command = std::string(PLATEAU_PROGRAM) + " run -q -t 1 -m '" + pico_text() +
                              "' -p hi -n 2 >/dev/full 2>/dev/null";
  EXPECT_NE(system(command.c_str()), 0);
}

TEST(Outputs, AFullDiscIsNamed) {
  for (const char* option : {"--trace-json", "--stats-json"}) {
    const Finished finished = plateau(pico_run({"-p", "hi", "-n", "2", option, "/dev/full"}));
    EXPECT_EQ(finished.exit_code, kCannotWrite);
    EXPECT_THAT(finished.err, HasSubstr("[/dev/full] cannot be written: No space left on device"));
  }
}

// A named pipe without a writer: what reads texts and results must not wait for one.
TEST(NamedPipe, IsRefused) {
  const TempDir dir;
  const std::string pipe = dir.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::vector<std::string> calls[] = {
      pico_run({"-f", pipe}),
      pico_run({"-p", "hi", "--chat-template-file", pipe}),
      {"run", "-m", pipe, "-p", "hi"},
      {"eval", "--set", pipe, "-m", pico_text()},
      {"report", "--out", dir.file("r.html"), pipe},
      {"evict", "--keys", pipe, "--budget", "4"},
      {"needle", "--out", dir.file("set"), "--background", pipe}};
  for (const std::vector<std::string>& call : calls) {
    const Finished finished = plateau(call);
    EXPECT_EQ(finished.exit_code, kBadInput) << call[0] << ": " << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(pipe)) << call[0];
  }
}

TEST(StandardInput, IsReadUnderEachOfItsNames) {
  for (const char* name : {"-", "/dev/stdin", "/dev/fd/0"}) {
    const Finished finished = plateau(pico_run({"-f", name, "-n", "1", "-q"}), {.input = "hello"});
    EXPECT_EQ(finished.exit_code, 0) << name << finished.err;
  }
}

}  // namespace
}  // namespace plateau::cli::testing

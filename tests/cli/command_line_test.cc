// What comes out where: answer, plan, figures, help, version, info, needle.
#include <gmock/gmock.h>

#include <set>

#include "cli/plateau_process.h"

namespace plateau::cli::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Run, AnswersOnStandardOutputAndTellsTheRestOnStandardError) {
  const TempDir dir;
  const Needle needle = make_needle(dir);
  const Finished finished = plateau(pico_run({"--image", needle.path, "-p", needle.question}));
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out, needle.answer + "\n");
  EXPECT_THAT(finished.err, HasSubstr("896x448 png, 33 tiles, 132 visual tokens"));
}

TEST(Run, QuietLeavesStandardErrorEmpty) {
  const Finished finished = plateau(pico_run({"-p", "hi", "-n", "1", "-q"}));
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.err, IsEmpty());
}

// A full log disc, a service without a terminal: what is said is lost, what is asked for is not.
TEST(Run, AnswersWhereNobodyListens) {
  const TempDir dir;
  for (const std::string err_path : {"/dev/full", "closed"}) {
    SCOPED_TRACE(err_path);
    const std::string stats = dir.file("stats.json");
    const Finished run =
        plateau(pico_run({"-p", "Hi", "-n", "2", "--stats-json", stats}), {.err_path = err_path});
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_FALSE(run.out.empty());
    EXPECT_TRUE(nlohmann::json::accept(media::testing::read_file(stats)));
    EXPECT_EQ(plateau(pico_run({"-p", "Hi", "--kv-budget", "0"}), {.err_path = err_path}).exit_code,
              2);
    EXPECT_EQ(
        plateau({"report", "--out", dir.file("r.html"), dir.file("none")}, {.err_path = err_path})
            .exit_code,
        3);
  }
}

TEST(Run, StatsHoldTheFieldsOfTheContract) {
  const TempDir dir;
  const Needle needle = make_needle(dir);
  const auto stats = stats_of({"--image", needle.path, "-p", needle.question});
  for (const char* field : {"prompt_tokens", "text_tokens", "visual_tokens", "blocks", "kv_budget",
                            "kv_arena_tokens", "kv_kept_max", "kv_bytes", "evicted_tokens",
                            "encode_ms", "prefill_ms", "ttft_ms", "decode_tokens", "decode_tok_s",
                            "peak_rss_bytes", "peak_anon_bytes", "plan_bytes", "images"}) {
    EXPECT_TRUE(stats.contains(field)) << field;
  }
  EXPECT_EQ(stats["answer"], needle.answer);
  EXPECT_EQ(stats["stop_reason"], "end");
  EXPECT_EQ(stats["visual_tokens"], 132);
  EXPECT_EQ(stats["prompt_tokens"], stats["text_tokens"].get<int>() + 132);
  EXPECT_EQ(stats["kv_bytes"], stats["kv_arena_tokens"].get<int>() * 1024);
  EXPECT_GT(stats["peak_rss_bytes"], 1 << 20);
  EXPECT_LE(stats["peak_anon_bytes"], stats["peak_rss_bytes"]);
  EXPECT_GE(stats["ttft_ms"], stats["encode_ms"]);
  ASSERT_EQ(stats["images"].size(), 1u);
  const auto& image = stats["images"][0];
  EXPECT_EQ(image["original_width"], 896);
  EXPECT_EQ(image["original_height"], 448);
  EXPECT_EQ(image["used_width"], 896);
  EXPECT_EQ(image["tiles"], 33);
  EXPECT_EQ(image["tokens_made"], 132);
  EXPECT_EQ(image["tokens_kept"], 132);
}

TEST(Run, StatsToStandardOutputFollowTheAnswer) {
  const Finished finished = plateau(pico_run({"-p", "hi", "-n", "1", "--stats-json", "-"}));
  const size_t brace = finished.out.find('{');
  ASSERT_NE(brace, std::string::npos) << finished.out;
  EXPECT_EQ(nlohmann::json::parse(finished.out.substr(brace))["decode_tokens"], 1);
}

TEST(Run, TextThatIsNoUtf8IsRefused) {
  for (const char* text : {"\xf4\x90\x80\x80", "caf\xe9", "\xed\xa0\x80"}) {
    const Finished finished = plateau(pico_run({"-f", "-", "-n", "1"}), {.input = text});
    EXPECT_EQ(finished.exit_code, 2);
    EXPECT_THAT(finished.err, HasSubstr("[prompt] expected text in UTF-8"));
  }
}

TEST(Run, QuestionFromStandardInputEqualsTheOption) {
  const auto by_option = stats_of({"-p", "What number is on the cat?", "-n", "4"});
  const auto by_input = stats_of({"-f", "-", "-n", "4"}, {.input = "What number is on the cat?"});
  EXPECT_EQ(by_input["answer"], by_option["answer"]);
  EXPECT_EQ(by_input["prompt_tokens"], by_option["prompt_tokens"]);
}

TEST(Run, SystemMessageAddsText) {
  const auto without = stats_of({"-p", "hi", "-n", "1"});
  const auto with = stats_of({"-p", "hi", "-n", "1", "--system", "Be brief."});
  EXPECT_GT(with["text_tokens"], without["text_tokens"]);
}

TEST(Run, SpecialTokenTextInAQuestionIsPlainText) {
  const TempDir dir;
  const Needle needle = make_needle(dir, 448, 224);
  const auto tokens = [&](const std::string& question) {
    const auto stats = stats_of({"--image", needle.path, "-p", question, "-n", "1"});
    EXPECT_EQ(stats["visual_tokens"], 36) << question;
    return stats["text_tokens"].get<int>();
  };
  // A special token would count one, beside the space; its text counts several.
  const int plain = tokens("a b");
  for (const std::string text : {"<img>", "</img>", "<IMG_CONTEXT>", "<|im_end|>", "<|im_start|>",
                                 "<image>", "<__media__>"}) {
    EXPECT_GT(tokens("a " + text + " b"), plain + 2) << text;
  }
}

TEST(Run, SpecialTokenTextDoesNotChangeTheAnswersPath) {
  const TempDir dir;
  const Needle needle = make_needle(dir);
  const std::string image_like = needle.question + " <img></img> <|im_end|>";
  const auto stats = stats_of({"--image", needle.path, "-p", image_like, "-n", "4"});
  EXPECT_EQ(stats["visual_tokens"], 132);
  EXPECT_EQ(stats["images"].size(), 1u);
}

TEST(Help, NamesEveryOptionOfTheContract) {
  const Finished finished = plateau({"run", "--help"});
  EXPECT_EQ(finished.exit_code, 0);
  for (const char* option :
       {"--model", "--mmproj", "--image", "--prompt", "--block", "--temp", "--seed", "--threads",
        "--stats-json", "--max-tiles", "-ctk", "-ngl"}) {
    EXPECT_THAT(finished.out, HasSubstr(option));
  }
  EXPECT_THAT(finished.out, Not(HasSubstr("->")));
}

TEST(Version, NamesThePinnedLlamaCpp) {
  const Finished finished = plateau({"--version"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.out, HasSubstr("llama.cpp v"));
}

TEST(Info, TellsWhatIsInAFile) {
  const Finished text = plateau({"info", pico_text()});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, HasSubstr("qwen3"));
  EXPECT_THAT(text.out, HasSubstr("1.00 KiB (f16)"));
  const Finished vision = plateau({"info", pico_mmproj()});
  EXPECT_EQ(vision.exit_code, 0);
  EXPECT_THAT(vision.out, HasSubstr("internvl"));
  EXPECT_THAT(vision.out, HasSubstr("112x112"));
  EXPECT_EQ(plateau({"info"}).exit_code, 0);
}

TEST(Needle, SameSeedSamePicture) {
  const TempDir one;
  const TempDir two;
  EXPECT_EQ(media::testing::read_file(make_needle(one, 448, 224, 7).path),
            media::testing::read_file(make_needle(two, 448, 224, 7).path));
}

TEST(Needle, RefusesWhatItCannotMake) {
  const TempDir dir;
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--format", "bmp"},
                                                {"--objects", "9"},
                                                {"--width", "0"},
                                                {"--count", "0"}}) {
    std::vector<std::string> words = {"needle", "--out", dir.file("n")};
    words.insert(words.end(), wrong.begin(), wrong.end());
    const Finished finished = plateau(words);
    EXPECT_EQ(finished.exit_code, 2) << wrong[0] << ": " << finished.err;
  }
}

TEST(Wording, OfOneThing) {
  const TempDir dir;
  const Finished made = plateau({"needle", "--out", dir.file("set"), "--width", "224", "--height",
                                 "112", "--objects", "1", "--count", "1"});
  EXPECT_THAT(made.out, HasSubstr(": 1 picture, 1 question\n"));
  const Finished finished = plateau(pico_run(
      {"--image", dir.file("set/needle-0000.jpg"), "--max-tiles", "1", "-p", "hi", "-n", "1"}));
  EXPECT_THAT(finished.err, HasSubstr(" in 1 block, "));
  EXPECT_THAT(finished.err, Not(HasSubstr(" 1 blocks")));
  EXPECT_THAT(finished.err, HasSubstr(", 1 tile, "));
}

}  // namespace
}  // namespace plateau::cli::testing

// plateau eval with the bundled pair: what it asks, and what it answers.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "cli/eval_command_fixture.h"
#include "support/film_writer.h"

namespace plateau::cli::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(EvalCommand, RunsPoliciesAndBudgetsInOneCall) {
  const Finished finished = eval(set(), with(kGrid, {"--out", out()}));
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  for (const char* name :
       {"full", "snapkv:28", "random:28", "post-prefill-snapkv:28", "resize:12"}) {
    EXPECT_THAT(finished.out, HasSubstr(name));
  }
  const std::vector<json> lines = lines_of(out());
  EXPECT_EQ(lines[0]["type"], "header");
  EXPECT_EQ(lines[0]["schema"], "plateau-eval-1");
  const std::vector<json> results = of_type(lines, "result");
  ASSERT_EQ(results.size(), 4U * 5);
  int n_encoded = 0;
  for (const json& result : results) {
    const bool is_full = result["setting"] == "full";
    const bool is_resized = result["setting"] == "resize:12";
    EXPECT_EQ(result["visual_tokens"], is_resized ? 12 : 36) << result;
    if (!is_full && !is_resized) {
      EXPECT_EQ(result["kept_tokens"], 28) << result;
    }
    const double any = result["needle"]["any_share"];
    const double token = result["needle"]["token_share"];
    EXPECT_LE(token, any + 1e-9);
    EXPECT_EQ(result["needle"]["any_share_by_layer"].size(), 4U);
    if (is_full) {
      EXPECT_EQ(any, 1);
      EXPECT_EQ(token, 1);
    }
    EXPECT_EQ(result["right"], result["score"] == 1);
    n_encoded += result["encoded_tiles"] > 0 ? 1 : 0;
  }
  EXPECT_EQ(n_encoded, 2 * 2);  // two pictures, each at two resolutions
  const std::vector<json> summaries = of_type(lines, "summary");
  ASSERT_EQ(summaries.size(), 5U);
  EXPECT_EQ(summaries[0]["setting"], "full");
  EXPECT_EQ(summaries[1]["paired"]["n"], 4);
  EXPECT_EQ(of_type(lines, "correlation").size(), 2U);
}

TEST_F(EvalCommand, AnswersAreThoseOfRun) {
  ASSERT_EQ(eval(set(), {"--kv-budget", "28", "--out", out()}).exit_code, 0);
  for (const json& question : lines_of(set() + "/set.jsonl")) {
    const std::string image = set() + "/" + question["image"].get<std::string>();
    const json stats =
        stats_of({"--image", image, "-p", question["question"], "--kv-budget", "28"});
    const json got = answers_of(out()).at(question["id"].get<std::string>() + " snapkv:28");
    EXPECT_EQ(got["answer"], stats["answer"]);
    EXPECT_EQ(got["kv_bytes"], stats["kv_bytes"]);
    EXPECT_EQ(got["expected"], question["answer"]);
  }
}

TEST_F(EvalCommand, JobsAndTheEmbeddingCacheChangeNoAnswer) {
  ASSERT_EQ(eval(set(), with(kGrid, {"--out", out()})).exit_code, 0);
  const auto want = answers_of(out());
  const std::string jobs = own_.file("jobs.jsonl");
  const Finished parallel = eval(set(), with(kGrid, {"--out", jobs, "--jobs", "3"}));
  ASSERT_EQ(parallel.exit_code, 0) << parallel.err;
  EXPECT_EQ(answers_of(jobs), want);
  const std::string uncached = own_.file("uncached.jsonl");
  ASSERT_EQ(eval(set(), with(kGrid, {"--out", uncached, "--embedding-cache", "0"})).exit_code, 0);
  EXPECT_EQ(answers_of(uncached), want);
  for (const json& result : of_type(lines_of(uncached), "result")) {
    EXPECT_GT(result["encoded_tiles"], 0);
  }
}

TEST_F(EvalCommand, GoesOnWhereItStopped) {
  ASSERT_EQ(eval(set(), with(kGrid, {"--out", out()})).exit_code, 0);
  const std::string whole = media::testing::read_file(out());
  // Header, seven results and half of the eighth.
  size_t end = 0;
  for (int i = 0; i < 8; ++i) end = whole.find('\n', end) + 1;
  std::ofstream(out(), std::ios::binary) << whole.substr(0, end + 40);
  const Finished again = eval(set(), with(kGrid, {"--out", out()}));
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, AllOf(HasSubstr("13 answers to go"), HasSubstr("unfinished")));
  const std::string resumed = media::testing::read_file(out());
  EXPECT_EQ(resumed.substr(0, end), whole.substr(0, end));
  EXPECT_EQ(answers_of(out()).size(), 20U);
  // Nothing to do: the same lines, and the model is not loaded.
  const Finished third = eval(set(), with(kGrid, {"--out", out()}));
  EXPECT_EQ(third.exit_code, 0);
  EXPECT_THAT(third.err, HasSubstr("0 answers to go"));
  EXPECT_EQ(third.out, again.out);
  EXPECT_EQ(media::testing::read_file(out()), resumed);
  // A setting more is added.
  ASSERT_EQ(eval(set(), {"--kv-budget", "26", "--out", out()}).exit_code, 0);
  EXPECT_EQ(answers_of(out()).size(), 24U);
  EXPECT_EQ(of_type(lines_of(out()), "summary").size(), 6U);
}

TEST_F(EvalCommand, AnotherRunsResultsAreNotMixedIn) {
  ASSERT_EQ(eval(set(), {"--out", out()}).exit_code, 0);
  const std::string before = media::testing::read_file(out());
  const Finished other = eval(set(), {"--out", out(), "--window", "16"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr("window"), HasSubstr("another run")));
  EXPECT_EQ(media::testing::read_file(out()), before);
}

TEST_F(EvalCommand, MultipleChoiceByTextLetterAndLikelihood) {
  const json first = lines_of(set() + "/set.jsonl")[1];  // the model reads it right
  const int digit = std::stoi(first["answer"].get<std::string>());
  json question = first;
  question["image"] = set() + "/" + first["image"].get<std::string>();
  question["choices"] = {std::to_string((digit + 1) % 10), first["answer"],
                         std::to_string((digit + 2) % 10)};
  // The pico model knows numbers, not letters: judged by letter, it is asked for all the same.
  json lettered = question;
  lettered["id"] = "lettered";
  lettered["question"] = first["question"].get<std::string>() + "\nA. 1\nB. 2\nC. 3";
  lettered["answer"] = "B";
  const std::string file =
      write_own("choices.jsonl", question.dump() + "\n" + lettered.dump() + "\n");
  for (const std::string judge : {"generate", "likelihood", "likelihood-text"}) {
    const std::string results = own_.file(judge + ".jsonl");
    const Finished finished = eval(file, {"--judge", judge, "--out", results});
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    const auto answers = answers_of(results);
    const json& by_text = answers.at(first["id"].get<std::string>() + " full");
    EXPECT_EQ(by_text["expected"], first["answer"]);
    EXPECT_EQ(by_text["choice"], 1) << judge;
    EXPECT_EQ(by_text["right"], true);
    EXPECT_EQ(answers.at("lettered full")["expected"], "B");
    for (const auto& [pair, result] : answers) {
      EXPECT_EQ(result.contains("log_probs"), judge != "generate");
      if (judge == "generate") continue;
      const std::vector<double> log_probs = result["log_probs"];
      ASSERT_EQ(log_probs.size(), 3U);
      for (const double log_prob : log_probs) EXPECT_LT(log_prob, 0);
      // One token each, so that the mean per token is the sum.
      const auto best = std::max_element(log_probs.begin(), log_probs.end()) - log_probs.begin();
      EXPECT_EQ(result["choice"], best);
    }
  }
}

TEST_F(EvalCommand, FilmsAreAsked) {
  std::filesystem::create_directory(own_.file("film"));
  test::write_film(own_.file("film/b.mov"), {.container = "mov", .tick_den = 1}, 5,
                   [](int64_t i, test::FilmCanvas& canvas) { test::draw_clock(i, canvas); });
  const std::string file =
      write_own("film.json", R"([{"video": "b.mov", "question": "q", "candidates": ["x", "y"],)"
                             R"( "answer": "x", "question_type": "count"}])");
  const Finished finished = eval(file, {"--media", own_.path(), "--out", out(), "--fps", "0.5"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  const auto answers = of_type(lines_of(out()), "result");
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0]["visual_tokens"], 3 * 4);
  EXPECT_EQ(eval(file, {"--media", own_.path(), "--fps", "0"}).exit_code, 2);
}

TEST_F(EvalCommand, NeedlesAreFollowedThroughFilms) {
  const std::string folder = own_.file("films");
  const Finished made =
      plateau({"needle", "--film", "--out", folder, "--seconds", "20", "--objects", "3", "--kinds",
               "number,first", "--questions", "4", "--seed", "3"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("set.jsonl: 1 film, 4 questions"));
  EXPECT_THAT(made.err, Not(HasSubstr("fewer")));
  const Finished fewer = plateau({"needle", "--film", "--out", own_.file("few"), "--seconds", "9",
                                  "--kinds", "number,first", "--questions", "2"});
  EXPECT_EQ(fewer.exit_code, 0) << fewer.err;
  EXPECT_THAT(fewer.err, HasSubstr("plateau: 1 question fewer than asked for: 1 of kind first"));
  const Finished finished =
      eval(folder, {"--kv-budget", "full,36", "--block", "16", "--no-bulk", "--out", out()});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const auto results = of_type(lines_of(out()), "result");
  ASSERT_EQ(results.size(), 8U);
  double n_right = 0;
  for (const json& result : results) {
    EXPECT_EQ(result["visual_tokens"], 20 * 4);
    EXPECT_GE(result["needle"]["tokens"], 1);
    EXPECT_LE(result["needle"]["tokens"], result["kind"] == "first" ? 8 : 4);
    const bool is_full = result["setting"] == "full/block=16";
    if (is_full) {
      EXPECT_EQ(result["needle"]["token_share"], 1);
    } else {
      EXPECT_LT(result["needle"]["token_share"], 1);
    }
    n_right += is_full && result["kind"] == "number" && result["right"] ? 1 : 0;
  }
  EXPECT_GE(n_right, 1) << "the pico model reads numbers in films";
  // Looked at every fourth second, most needles are not seen, and none of them is kept.
  const std::string seldom = own_.file("seldom.jsonl");
  ASSERT_EQ(eval(folder, {"--fps", "0.25", "--out", seldom}).exit_code, 0);
  int n_unseen = 0;
  for (const json& result : of_type(lines_of(seldom), "result")) {
    if (result["needle"]["tokens"] != 0) continue;
    ++n_unseen;
    EXPECT_EQ(result["needle"]["any_share"], 0);
  }
  EXPECT_GE(n_unseen, 1);
}

}  // namespace
}  // namespace plateau::cli::testing

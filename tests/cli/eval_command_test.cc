// plateau eval with the bundled pair on small needle sets.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "cli/plateau_process.h"
#include "support/film_writer.h"

namespace plateau::cli::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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
    std::vector<json> lines;
    std::istringstream text(media::testing::read_file(path));
    for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
    return lines;
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
    std::ofstream(own_.file(name), std::ios::binary) << text;
    return own_.file(name);
  }

  TempDir own_;

 private:
  inline static std::unique_ptr<TempDir> dir_;
};

const std::vector<std::string> kGrid = {
    "--policy", "snapkv,random,post-prefill-snapkv", "--kv-budget", "full,28", "--resize", "12"};

std::vector<std::string> with(std::vector<std::string> first,
                              const std::vector<std::string>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

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

TEST_F(EvalCommand, AMissingPictureIsAnErrorRecordAndTheOthersGoOn) {
  std::string text = media::testing::read_file(set() + "/set.jsonl");
  json missing = json::parse(text.substr(0, text.find('\n')));
  missing["id"] = "missing";
  missing["image"] = "no-such.png";
  const std::string folder = own_.file("partly");
  std::filesystem::copy(set(), folder, std::filesystem::copy_options::recursive);
  std::ofstream(folder + "/set.jsonl", std::ios::binary) << missing.dump() + "\n" + text;

  const Finished finished = eval(folder, {"--kv-budget", "full,28", "--out", out()});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_THAT(finished.err,
              AllOf(HasSubstr("no-such.png"), HasSubstr("2 of 10 answers could not")));
  EXPECT_THAT(finished.out, HasSubstr("errors: 1"));
  const std::vector<json> errors = of_type(lines_of(out()), "error");
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_EQ(errors[0]["id"], "missing");
  EXPECT_EQ(errors[0]["code"], "not_found");
  EXPECT_EQ(answers_of(out()).size(), 8U);
  EXPECT_EQ(of_type(lines_of(out()), "summary")[0]["errors"], 1);

  const Finished strict = eval(folder, {"--strict-data", "--out", own_.file("strict.jsonl")});
  EXPECT_EQ(strict.exit_code, 3);
  EXPECT_EQ(of_type(lines_of(own_.file("strict.jsonl")), "result").size(), 0U);
  const size_t told = strict.err.find("missing under");
  EXPECT_NE(told, std::string::npos);
  EXPECT_EQ(strict.err.find("missing under", told + 1), std::string::npos) << "told twice";

  // The picture comes back: only its questions are asked.
  std::filesystem::copy(folder + "/needle-0000.png", folder + "/no-such.png");
  const Finished repaired = eval(folder, {"--kv-budget", "full,28", "--out", out()});
  EXPECT_EQ(repaired.exit_code, 0) << repaired.err;
  EXPECT_THAT(repaired.err, HasSubstr("2 answers to go"));
  EXPECT_EQ(answers_of(out()).size(), 10U);
  EXPECT_EQ(of_type(lines_of(out()), "summary")[0]["errors"], 0);
}

TEST_F(EvalCommand, ABudgetThatAPromptCannotBePutIntoIsAnErrorRecord) {
  const Finished finished = eval(set(), {"--kv-budget", "full,3", "--out", out()});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_EQ(of_type(lines_of(out()), "error").size(), 4U);
  EXPECT_EQ(answers_of(out()).size(), 4U);
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

TEST_F(EvalCommand, ANeedleBehindTheEndOfItsFilmIsAnError) {
  test::write_film(own_.file("f.mov"), {.container = "mov", .tick_den = 1}, 3,
                   [](int64_t i, test::FilmCanvas& canvas) { test::draw_clock(i, canvas); });
  const auto film = [](const std::string& id, const std::string& times) {
    return R"({"id": ")" + id + R"(", "video": "f.mov", "question": "q", "answer": "x", )" +
           R"("needle": {)" + times + "}}\n";
  };
  const std::string file = write_own("films.jsonl", film("in", R"("start_s": 2, "end_s": 4)") +
                                                        film("out", R"("start_s": 3, "end_s": 4)"));
  EXPECT_EQ(eval(file, {"--out", out()}).exit_code, 3);
  const auto errors = of_type(lines_of(out()), "error");
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0]["id"], "out");
  EXPECT_THAT(errors[0]["message"].get<std::string>(), HasSubstr("expected a part of the 3 s of"));
}

TEST_F(EvalCommand, ReasonsAreToldWhenQuiet) {
  const std::string file = write_own(
      "one.jsonl", R"({"id": "a", "image": "no-such.png", "question": "q", "answer": "x"})");
  const Finished finished = eval(file, {"-q"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("no-such.png"), HasSubstr("1 of 1 answer ")));
}

TEST_F(EvalCommand, ResultsThatContradictTheSetAreNotBelieved) {
  ASSERT_EQ(eval(set(), {"--out", out()}).exit_code, 0);
  const std::string whole = media::testing::read_file(out());
  const std::string header = whole.substr(0, whole.find('\n') + 1);
  const std::vector<json> lines = lines_of(out());
  const std::tuple<const char*, json, const char*> changes[] = {
      {"id", "nobody", "field id"},        {"kind", "odd", "field kind"},
      {"expected", "x", "field expected"}, {"choice", 99, "field choice"},
      {"choice", nullptr, "field choice"}, {"score", 7, "field score"},
      {"policy", "mine", "field policy"}};
  for (const auto& [field, value, part] : changes) {
    const std::string path = own_.file("changed.jsonl");
    std::ofstream file(path, std::ios::binary);
    file << header << lines[1].dump() << "\n";
    json changed = lines[2];
    changed[field] = value;
    file << changed.dump() << "\n";
    file.close();
    const Finished finished = eval(set(), {"--out", path});
    EXPECT_EQ(finished.exit_code, 3) << part;
    EXPECT_THAT(finished.err, AllOf(HasSubstr("changed.jsonl:3]"), HasSubstr(part),
                                    Not(HasSubstr("json.exception"))));
  }
}

TEST_F(EvalCommand, AFilmThatIsMissingIsNamed) {
  const std::string file =
      write_own("films.json", R"([{"video": "a.mp4", "question": "q", "candidates": ["x", "y"],)"
                              R"( "answer": "x", "question_type": "count"}])");
  const Finished finished = eval(file, {"--out", out()});
  EXPECT_EQ(finished.exit_code, 3);
  const auto errors = of_type(lines_of(out()), "error");
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_THAT(errors[0].dump(), HasSubstr("a.mp4"));
}

TEST_F(EvalCommand, WrongOptionsAndSetsCostNothing) {
  const std::string bad = write_own("bad.jsonl", "{}\n{\n");
  const std::tuple<std::string, std::vector<std::string>, int, const char*> cases[] = {
      {set(), {"--policy", "snapvk"}, 2, "snapkv"},
      {set(), {"--kv-budget", "many"}, 2, "--kv-budget"},
      {set(), {"--kv-budget", "0"}, 2, "--kv-budget"},
      {set(), {"--policy", "full", "--kv-budget", "64"}, 2, "--policy"},
      {set(), {"--block", "x"}, 2, "--block"},
      {set(), {"--resize", "0"}, 2, "--resize"},
      {set(), {"--judge", "me"}, 2, "--judge"},
      {set(), {"--match", "some"}, 2, "--match"},
      {set(), {"--format", "coco"}, 2, "--format"},
      {set(), {"--jobs", "0"}, 2, "--jobs"},
      {set(), {"--limit", "-1"}, 2, "--limit"},
      {set(), {"-ngl", "-7"}, 2, "--n-gpu-layers"},
      {set(), {"--policy-seed", "-1"}, 2, "--policy-seed"},
      {set(), {"--device", "X"}, 2, "--device"},
      {set(), {"--embedding-cache", "much"}, 2, "--embedding-cache"},
      {set(), {"--out", set() + "/set.jsonl"}, 2, "--out"},
      {own_.file("nothing"), {}, 3, "nothing"},
      {bad, {}, 3, "bad.jsonl:2"},
      {write_own("empty.jsonl", ""), {}, 3, "at least one question"}};
  for (const auto& [set, arguments, exit_code, part] : cases) {
    const Finished finished = eval(set, arguments);
    EXPECT_EQ(finished.exit_code, exit_code) << part << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(part));
    EXPECT_THAT(finished.out, IsEmpty());
  }
}

TEST_F(EvalCommand, WrongValuesAreRefusedBeforeAnythingIsWritten) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"--fps", "0", "[--fps]"},
      {"--fps", "nan", "[--fps]"},
      {"--fps", "-1", "[--fps]"},
      {"--max-frames", "-1", "[--max-frames]"},
      {"-n", "0", "[-n]"},
      {"--max-tiles", "-1", "[--max-tiles]"},
      {"--max-image-pixels", "0", "[--max-image-pixels]"},
      {"--block", "65537", "[--block]"},
      {"-t", "-1", "[-t]"},
      {"--encoder-batch", "-1", "[--encoder-batch]"}};
  for (const auto& [option, value, part] : cases) {
    const Finished finished = plateau({"eval", "--set", set(), "-m", pico_text(), "--mmproj",
                                       pico_mmproj(), "--out", out(), option, value});
    EXPECT_EQ(finished.exit_code, 2) << option << " " << value << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(part));
    EXPECT_FALSE(std::filesystem::exists(out())) << option << " " << value;
  }
}

TEST_F(EvalCommand, CtrlCKeepsWhatIsDone) {
  for (const char* jobs : {"1", "2"}) {
    const std::string results = own_.file(std::string("interrupted-") + jobs);
    // A question that fails is told at once: by then there is a result, and more to do.
    std::string text = media::testing::read_file(set() + "/set.jsonl");
    const std::string folder = own_.file(std::string("many-") + jobs);
    std::filesystem::copy(set(), folder, std::filesystem::copy_options::recursive);
    std::ofstream file(folder + "/set.jsonl", std::ios::binary);
    const json first = json::parse(text.substr(0, text.find('\n')));
    for (int i = 0; i < 400; ++i) {
      json question = first;
      question["id"] = std::to_string(i);
      if (i == 3) question["image"] = "no-such.png";
      file << question.dump() << "\n";
    }
    file.close();
    const Finished finished = eval(folder, {"--block", "1", "--out", results, "--jobs", jobs},
                                   {.interrupt_after = "no-such.png"});
    EXPECT_EQ(finished.exit_code, 130) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(" kept"));
    const std::vector<json> lines = lines_of(results);  // every line is whole
    EXPECT_GE(lines.size(), 2U);
    EXPECT_LT(lines.size(), 400U);
    EXPECT_THAT(of_type(lines, "summary"), IsEmpty());
  }
}

TEST_F(EvalCommand, AFullDiscKeepsFinishedResults) {
  ASSERT_EQ(eval(set(), {"--out", out()}).exit_code, 0);
  const std::string whole = media::testing::read_file(out());
  size_t end = 0;
  for (int i = 0; i < 3; ++i) end = whole.find('\n', end) + 1;  // header and two results
  const std::string limited = own_.file("limited.jsonl");
  // A limit on the size of files stands for the full disc. The program inherits it.
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = end + 50;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &limit);
  const Finished finished = eval(set(), {"--out", limited});
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("cannot be written"), HasSubstr(" kept")));
  EXPECT_EQ(of_type(lines_of(limited), "result").size(), 2U);
  // There is room again.
  EXPECT_EQ(eval(set(), {"--out", limited}).exit_code, 0);
  EXPECT_EQ(answers_of(limited), answers_of(out()));
}

TEST_F(EvalCommand, ResultsThatCannotBeWrittenAtAll) {
  for (const std::string& path : {own_.path(), own_.file("none/x")}) {
    const Finished refused = eval(set(), {"--out", path});
    EXPECT_EQ(refused.exit_code, 1) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(path + "] cannot be opened for writing: "));
  }
  const Finished finished = eval(set(), {"--out", "/dev/full"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.err, HasSubstr("/dev/full"));
}

}  // namespace
}  // namespace plateau::cli::testing

// plateau eval where sets, options, files or the disc are not as they should be.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "cli/eval_command_fixture.h"
#include "support/film_writer.h"

namespace plateau::cli::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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
      {"policy", "mine", "field policy"},  {"media_bytes", 7, "field media_bytes"}};
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

TEST_F(EvalCommand, ResultsOfOtherPicturesAreNotGoneOnWith) {
  const std::string folder = own_.file("drawn-anew");
  std::filesystem::copy(set(), folder);
  ASSERT_EQ(eval(folder, {"--out", out()}).exit_code, 0);
  const std::string whole = media::testing::read_file(out());
  const std::string picture = folder + "/needle-0000.png";
  std::ofstream(picture, std::ios::app | std::ios::binary) << "one byte more is another picture";
  const Finished finished = eval(folder, {"--out", out()});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("results.jsonl:2]"), HasSubstr("have changed since")));
  EXPECT_EQ(media::testing::read_file(out()), whole);

  // What is done needs its pictures no more.
  std::filesystem::remove(picture);
  EXPECT_EQ(eval(folder, {"--out", out()}).exit_code, 0);
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

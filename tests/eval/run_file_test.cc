#include "eval/run_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>

#include "eval/eval_test_support.h"
#include "eval/fingerprint.h"

namespace plateau::eval {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

Json header(const std::string& judge = "generate") {
  return {{"type", "header"}, {"identity", {{"set", "1234"}, {"judge", judge}}}, {"set", "path"}};
}

ResultRecord record(const std::string& id, double score = 1, int budget = 64) {
  ResultRecord result;
  result.id = id;
  result.setting = {.policy = "snapkv", .budget = budget};
  result.score = score;
  result.right = score == 1;
  return result;
}

std::string line(const std::string& id, double score = 1) {
  return to_line(to_json(record(id, score)));
}

class RunFileTest : public ::testing::Test {
 protected:
  std::string path() const { return dir_.file("results.jsonl"); }
  void write(const std::string& text) { std::ofstream(path(), std::ios::binary) << text; }
  Error error_of(const Json& with) {
    try {
      const RunFile file(path(), with);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "was opened";
    return {ErrorCode::kInternal, ""};
  }
  TempDir dir_;
};

TEST_F(RunFileTest, GoesOnWhereItStopped) {
  {
    RunFile file(path(), header());
    EXPECT_TRUE(file.found().empty());
    file.append(line("a"));
    EXPECT_THAT(read_file(path()), EndsWith(line("a")));  // at once
    file.append(line("b", 0));
  }
  RunFile file(path(), header());
  ASSERT_EQ(file.found().size(), 2U);
  EXPECT_EQ(file.found()[1].id, "b");
  EXPECT_FALSE(file.was_repaired());
  file.append(line("c"));
  EXPECT_EQ(read_file(path()), to_line(header()) + line("a") + line("b", 0) + line("c"));
}

TEST_F(RunFileTest, DropsATornLine) {
  for (const size_t n_torn : {size_t{1}, size_t{20}, line("b").size() - 1}) {
    write(to_line(header()) + line("a") + line("b").substr(0, n_torn));
    RunFile file(path(), header());
    EXPECT_TRUE(file.was_repaired());
    ASSERT_EQ(file.found().size(), 1U);
    file.append(line("c"));
    EXPECT_EQ(read_file(path()), to_line(header()) + line("a") + line("c"));
  }
}

TEST_F(RunFileTest, ATornHeaderIsWrittenAnew) {
  write(to_line(header()).substr(0, 10));
  { const RunFile file(path(), header()); }
  EXPECT_EQ(read_file(path()), to_line(header()));
}

TEST_F(RunFileTest, TheLastLineOfAPairCounts) {
  write(to_line(header()) + line("a", 0) + line("b") + line("a", 1));
  const RunFile file(path(), header());
  ASSERT_EQ(file.found().size(), 2U);
  EXPECT_EQ(file.found()[0].id, "a");
  EXPECT_EQ(file.found()[0].score, 1);
}

TEST_F(RunFileTest, SummariesAreDropped) {
  write(to_line(header()) + line("a") + "{\"type\":\"summary\"}\n{\"type\":\"correlation\"}\n");
  { const RunFile file(path(), header()); }
  EXPECT_EQ(read_file(path()), to_line(header()) + line("a"));
}

TEST_F(RunFileTest, ResultsBehindASummaryAreRead) {
  const std::string summary = "{\"type\":\"summary\"}\n";
  const std::string results = to_line(header()) + line("a", 0) + summary + line("b") + line("a", 1);
  write(results + summary + "{\"type\":\"corre");
  {
    RunFile file(path(), header());
    EXPECT_TRUE(file.was_repaired());
    ASSERT_EQ(file.found().size(), 2U);
    EXPECT_EQ(file.found()[0].score, 1);
    EXPECT_EQ(file.found()[1].id, "b");
    file.append(line("c"));
  }
  EXPECT_EQ(read_file(path()), results + line("c"));
}

TEST_F(RunFileTest, AWrongLineBehindASummaryIsNamed) {
  for (const std::string wrong :
       {"garbage\n", "garbage", "{\"type\":\"result\"}\n", "\n", "{\"type\":\"header\"}\n"}) {
    const std::string text = to_line(header()) + line("a") + "{\"type\":\"summary\"}\n" + wrong;
    write(text);
    const Error error = error_of(header());
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << wrong;
    EXPECT_THAT(error.what(), HasSubstr("results.jsonl:4")) << wrong;
    EXPECT_EQ(read_file(path()), text);
  }
}

TEST_F(RunFileTest, AnotherRunIsRefusedByWhatDiffers) {
  write(to_line(header("generate")) + line("a"));
  const Error error = error_of(header("likelihood"));
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("judge"), HasSubstr("generate"),
                                  HasSubstr("likelihood"), HasSubstr("--out")));
  EXPECT_EQ(read_file(path()), to_line(header("generate")) + line("a"));
  // What is only good to know may differ.
  Json other = header("generate");
  other["set"] = "moved";
  const RunFile file(path(), other);
  EXPECT_EQ(file.found().size(), 1U);
}

TEST_F(RunFileTest, AnotherFileIsLeftAlone) {
  for (const char* text :
       {"my diary", "my diary\n", "{\"a\": 1}\n", "{\"type\":\"header\"}\n", "[]\n", "\n"}) {
    write(text);
    EXPECT_EQ(error_of(header()).code(), ErrorCode::kInvalidArgument) << text;
    EXPECT_EQ(read_file(path()), text);
  }
}

TEST_F(RunFileTest, ADamagedLineIsNamed) {
  write(to_line(header()) + line("a") + "{\"type\":\"result\"}\n" + line("b"));
  const Error error = error_of(header());
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(error.what(), HasSubstr("results.jsonl:3"));
  write(to_line(header()) + "garbage\n" + line("b"));
  EXPECT_THAT(error_of(header()).what(), HasSubstr("results.jsonl:2"));
}

TEST_F(RunFileTest, ALineThatContradictsTheSetIsNamed) {
  write(to_line(header()) + line("a") + line("b"));
  const auto only_a = [](const ResultRecord& record) {
    return record.id == "a" ? std::string() : "field id: expected a";
  };
  try {
    const RunFile file(path(), header(), only_a);
    ADD_FAILURE() << "was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_THAT(error.what(), HasSubstr("results.jsonl:3] field id: expected a"));
  }
  EXPECT_EQ(read_file(path()), to_line(header()) + line("a") + line("b"));
}

TEST_F(RunFileTest, OneProcessWritesAtATime) {
  const RunFile file(path(), header());
  EXPECT_THAT(error_of(header()).what(), HasSubstr("another process"));
}

TEST_F(RunFileTest, AFolderIsNoFile) {
  EXPECT_EQ(code_of([&] { const RunFile file(dir_.file(""), header()); }), ErrorCode::kUnavailable);
  EXPECT_EQ(code_of([&] { const RunFile file("/dev/full", header()); }), ErrorCode::kUnavailable);
}

// A limit on the file's size stands for a full disc: the same write fails, in the middle of a line.
TEST_F(RunFileTest, WhatFitsIsKeptWhenTheDiscIsFull) {
  const std::string whole = to_line(header()) + line("a") + line("b");
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  std::string message;
  {
    RunFile file(path(), header());
    rlimit limit = before;
    limit.rlim_cur = whole.size() + 10;
    setrlimit(RLIMIT_FSIZE, &limit);
    file.append(line("a"));
    file.append(line("b"));
    try {
      file.append(line("c"));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      message = error.what();
    }
    setrlimit(RLIMIT_FSIZE, &before);
  }
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, AllOf(StartsWith("["), HasSubstr("2 results are kept")));
  EXPECT_EQ(read_file(path()), whole);
}

TEST(FileFingerprint, SeesAChangeAndTheSize) {
  const TempDir dir;
  const auto print_of = [&](const std::string& text) {
    std::ofstream(dir.file("x"), std::ios::binary) << text;
    return file_fingerprint(dir.file("x"));
  };
  EXPECT_EQ(print_of("abc"), print_of("abc"));
  EXPECT_NE(print_of("abc"), print_of("abd"));
  EXPECT_NE(print_of(""), print_of(std::string(1, '\0')));
  // A file with a hole, above the size up to which every byte counts.
  const std::string text = "head";
  print_of(text);
  std::filesystem::resize_file(dir.file("x"), (80 << 20) + 5);
  const std::string large = file_fingerprint(dir.file("x"));
  std::filesystem::resize_file(dir.file("x"), (80 << 20) + 6);
  EXPECT_NE(file_fingerprint(dir.file("x")), large);
  EXPECT_EQ(code_of([&] { file_fingerprint(dir.file("no-such")); }), ErrorCode::kNotFound);
}

// The empty text and "abc": FIPS 180-2, appendix B.1.
TEST(Sha256, AgreesWithTheStandard) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace plateau::eval

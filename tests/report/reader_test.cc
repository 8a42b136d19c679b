// What is read of result files, and that wrong lines are told by file and number.
#include "report/reader.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "report/report_lines.h"
#include "support/expect_error.h"

namespace plateau::report {
namespace {

using testing::answer_line;
using testing::bench_line;
using testing::eval_header;
using testing::fingerprint_line;
using testing::json;
using testing::write_lines;

void expect_corrupt(const std::vector<json>& lines, const std::vector<std::string>& parts) {
  const test::TempDir dir;
  const std::string path = write_lines(dir, "r.jsonl", lines);
  test::expect_error([&] { (void)read_records({path}); }, ErrorCode::kCorrupt, parts);
}

TEST(ReadRecords, BenchWithItsSource) {
  const test::TempDir dir;
  const std::string path =
      write_lines(dir, "r.jsonl", {fingerprint_line(), bench_line(4096, 1024)});
  const Records records = read_records({path});
  ASSERT_EQ(records.bench.size(), 1u);
  const BenchRecord& r = records.bench[0];
  EXPECT_EQ(r.visual_tokens, 4096);
  EXPECT_EQ(r.budget, 1024);
  EXPECT_EQ(r.ttft_ms.median, 1000);
  EXPECT_FALSE(r.llama.has_value());
  const Source& source = records.sources.at(r.source);
  EXPECT_EQ(source.file, path);
  EXPECT_EQ(source.command, "plateau bench --shape 0.5b");
  EXPECT_THAT(source.machine, ::testing::HasSubstr("Test CPU, 2 cores, 8 GiB"));
  EXPECT_THAT(source.model, ::testing::HasSubstr("cut from 24 layers"));
}

TEST(ReadRecords, AFailedMeasurementIsKeptApart) {
  const test::TempDir dir;
  json failed = bench_line(4096, 1024, {{"error", "out of memory"}});
  failed.erase("ttft_ms");
  const Records records = read_records({write_lines(dir, "r.jsonl", {fingerprint_line(), failed})});
  EXPECT_TRUE(records.bench.empty());
  ASSERT_EQ(records.failures.size(), 1u);
  EXPECT_EQ(records.failures[0].error, "out of memory");
}

TEST(ReadRecords, AnswersAreSummedUpPerSetting) {
  const test::TempDir dir;
  const Records records = read_records({write_lines(
      dir, "e.jsonl",
      {eval_header(), answer_line("a", "", "full", true), answer_line("b", "", "full", true),
       answer_line("a", "snapkv", 64, true), answer_line("b", "snapkv", 64, false),
       answer_line("c", "snapkv", 64, false), answer_line("d", "snapkv", 64, false)})});
  ASSERT_EQ(records.eval.size(), 2u);
  EXPECT_EQ(records.eval[0].accuracy, 1);
  EXPECT_EQ(records.eval[0].standard_error, 0);
  const EvalSetting& s = records.eval[1];
  EXPECT_EQ(s.n, 4);
  EXPECT_EQ(s.accuracy, 0.25);
  EXPECT_NEAR(s.standard_error, std::sqrt(0.25 * 0.75 / 4), 1e-12);
  EXPECT_EQ(s.any_share, 0.5);
  EXPECT_EQ(s.token_share, 0.25);
  EXPECT_EQ(s.budget, 64);
}

TEST(ReadRecords, OfSeveralAnswersToOneQuestionTheLastCounts) {
  const test::TempDir dir;
  json error = answer_line("a", "snapkv", 64, false);
  error["type"] = "error";
  const Records records =
      read_records({write_lines(dir, "e.jsonl",
                                {eval_header(), error, answer_line("b", "snapkv", 64, false),
                                 answer_line("a", "snapkv", 64, true)})});
  EXPECT_EQ(records.eval.at(0).n, 2);
  EXPECT_EQ(records.eval.at(0).n_errors, 0);
  EXPECT_EQ(records.eval.at(0).accuracy, 0.5);
}

TEST(ReadRecords, SummariesAreWorkedOutAnew) {
  const test::TempDir dir;
  EXPECT_EQ(read_records({write_lines(dir, "e.jsonl",
                                      {eval_header(),
                                       answer_line("a", "", "full", true),
                                       {{"type", "summary"}, {"accuracy", 0.1}},
                                       {{"type", "correlation"}}})})
                .eval.at(0)
                .accuracy,
            1);
}

TEST(ReadRecords, AMissingFile) {
  test::expect_error([] { (void)read_records({"/nonexistent.jsonl"}); }, ErrorCode::kNotFound,
                     {"/nonexistent.jsonl"});
}

TEST(ReadRecords, AnEmptyFileAndAFolder) {
  const test::TempDir dir;
  const std::string path = write_lines(dir, "r.jsonl", {});
  test::expect_error([&] { (void)read_records({path}); }, ErrorCode::kCorrupt, {path, "empty"});
  test::expect_error([&] { (void)read_records({dir.path()}); }, ErrorCode::kCorrupt, {dir.path()});
}

TEST(ReadRecords, AFileWithoutAResult) {
  expect_corrupt({fingerprint_line()}, {"r.jsonl", "found none"});
}

TEST(ReadRecords, MalformedLinesAreToldByNumber) {
  for (const std::string bad : {"{\"type\": \"bench\"", "nonsense", "[1, 2]", "NaN", "\xff\xfe"}) {
    const test::TempDir dir;
    const std::string path = write_lines(dir, "r.jsonl", {fingerprint_line()});
    std::ofstream(path, std::ios::app) << "\n" << bad << "\n";
    test::expect_error([&] { (void)read_records({path}); }, ErrorCode::kCorrupt,
                       {"r.jsonl:3", "JSON object"});
  }
}

TEST(ReadRecords, UnknownTypesAreRefused) {
  expect_corrupt({fingerprint_line(), {{"type", "sound"}}}, {"r.jsonl:2", "\"sound\"", "bench"});
  expect_corrupt({{{"kind", "x"}}}, {"r.jsonl:1", "\"type\""});
}

TEST(ReadRecords, MissingAndWrongFieldsAreNamed) {
  json line = bench_line(4096, 1024);
  line.erase("kv_bytes");
  expect_corrupt({fingerprint_line(), line}, {"r.jsonl:2", "\"kv_bytes\"", "found none"});
  for (const json& bad : {json("many"), json(-1), json(1.5), json(nullptr), json::array()}) {
    expect_corrupt({fingerprint_line(), bench_line(4096, 1024, {{"kv_bytes", bad}})},
                   {"r.jsonl:2", "\"kv_bytes\"", bad.dump()});
  }
  expect_corrupt({fingerprint_line(), bench_line(4096, 1024, {{"ttft_ms", 5}})},
                 {"r.jsonl:2", "\"ttft_ms\"", "an object"});
  expect_corrupt({eval_header(), answer_line("a", "snapkv", 64, true, {{"score", "good"}})},
                 {"r.jsonl:2", "\"score\""});
}

TEST(ReadRecords, ResultsNeedTheirFirstLine) {
  expect_corrupt({bench_line(4096, 1024)}, {"r.jsonl:1", "fingerprint", "\"r1\""});
  expect_corrupt({answer_line("a", "snapkv", 64, true)}, {"r.jsonl:1", "header"});
}

}  // namespace
}  // namespace plateau::report

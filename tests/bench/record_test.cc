// The fields of the JSON lines, and the table made of them.
#include "bench/record.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "bench/table.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::bench {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

BenchPoint point_with_budget() {
  BenchPoint point;
  point.n_input = 4096;
  point.engine.n_threads = 2;
  point.request.kv.budget = 1024;
  return point;
}

Measurement measurement() {
  Measurement m;
  m.first.n_prompt = 4144;
  m.first.n_visual = 4096;
  m.first.kv_bytes = 3 << 20;
  m.first.planned_kv_bytes = 3 << 20;
  m.ttft_ms = {.median = 2000, .min = 1900, .max = 2200};
  m.peak_anon_bytes = 40 << 20;
  return m;
}

TEST(MeasurementLine, HoldsTheFieldsOfTheContract) {
  const json r = json::parse(measurement_line("r1", point_with_budget(), measurement()));
  for (const char* field : {"type",
                            "run",
                            "input",
                            "n_input",
                            "kv_budget",
                            "policy",
                            "block",
                            "bulk",
                            "strict",
                            "cache_type_k",
                            "cache_type_v",
                            "threads",
                            "decode_tokens",
                            "repeats",
                            "isolated",
                            "prompt_tokens",
                            "visual_tokens",
                            "blocks",
                            "largest_block",
                            "ttft_ms",
                            "encode_ms",
                            "prefill_ms",
                            "score_ms",
                            "select_ms",
                            "compact_ms",
                            "prompt_tok_s",
                            "decode_tok_s",
                            "arena_tokens",
                            "kept_tokens",
                            "kv_bytes",
                            "kv_bytes_planned",
                            "compute_bytes",
                            "encoder_bytes",
                            "compute_bytes_planned",
                            "peak_anon_bytes_planned",
                            "weights_bytes",
                            "loaded_anon_bytes",
                            "peak_anon_bytes",
                            "peak_rss_bytes"}) {
    EXPECT_TRUE(r.contains(field)) << field;
  }
  EXPECT_EQ(r["type"], "bench");
  EXPECT_EQ(r["kv_budget"], 1024);
  EXPECT_EQ(r["policy"], "snapkv");
  EXPECT_EQ(r["ttft_ms"]["min"], 1900);
  EXPECT_EQ(r["prompt_tok_s"], 2072);
  EXPECT_TRUE(r["decode_tok_s"].is_null());
  EXPECT_FALSE(r.contains("llama_cpp"));
  EXPECT_FALSE(r.contains("profile"));
}

TEST(MeasurementLine, ComparisonAndProfile) {
  Measurement m = measurement();
  m.profile = ProfileTimes{.linear_ms = 700, .attention_ms = 300};
  m.llama.emplace();
  m.llama->n_ubatch = 512;
  m.llama->ttft_ratio = {.median = 1.5, .min = 1.4, .max = 1.6};
  const json r = json::parse(measurement_line("r1", point_with_budget(), m));
  EXPECT_EQ(r["profile"]["linear_ms"], 700);
  EXPECT_EQ(r["llama_cpp"]["ubatch"], 512);
  EXPECT_EQ(r["speedup"]["ttft"]["median"], 1.5);
  EXPECT_TRUE(r["speedup"]["decode"].is_null());
}

TEST(MeasurementLine, AFullCacheHasNoPolicy) {
  BenchPoint point = point_with_budget();
  point.request.kv.budget = 0;
  const json r = json::parse(measurement_line("r1", point, measurement()));
  EXPECT_EQ(r["kv_budget"], "full");
  EXPECT_EQ(r["policy"], "full");
}

TEST(FailureLine, KeepsThePointAndOneLine) {
  const std::string line = failure_line("r1", point_with_budget(), "too \"small\"\nby far \xff");
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const json r = json::parse(line);
  EXPECT_THAT(r["error"], HasSubstr("too \"small\""));
  EXPECT_EQ(r["n_input"], 4096);
  EXPECT_FALSE(r.contains("ttft_ms"));
}

TEST(Fingerprint, TellsMachineBuildAndModel) {
  const test::TempDir dir;
  test::TinyTextModel model;
  const std::string path = dir.file("a.gguf");
  test::write_tiny_text(model, path);
  const Fingerprint f = take_fingerprint(path, {"plateau", "bench", "-m", path});
  EXPECT_EQ(f.model_file, "a.gguf");
  EXPECT_EQ(f.n_embd, model.n_embd);
  EXPECT_EQ(f.weight_type, "f32");
  EXPECT_GT(f.ram_bytes, 1 << 20);
  EXPECT_GE(f.n_cores, 1);
  EXPECT_EQ(f.date.size(), std::string("2026-11-30T12:00:00Z").size());
  const json r = json::parse(fingerprint_line(f));
  EXPECT_EQ(r["type"], "fingerprint");
  EXPECT_EQ(r["run"].get<std::string>().size(), 16u);
  EXPECT_THAT(r["command"], HasSubstr("plateau bench -m"));
  for (const char* field : {"date", "cpu", "cores", "ram_bytes", "kernel", "compiler", "build_type",
                            "version", "commit", "llama_cpp", "model"}) {
    EXPECT_TRUE(r.contains(field)) << field;
  }
}

TEST(Fingerprint, TheHashIsOfTheMetadata) {
  const test::TempDir dir;
  const auto hash = [&](const test::TinyTextModel& model) {
    test::write_tiny_text(model, dir.file("a.gguf"));
    return take_fingerprint(dir.file("a.gguf"), {}).metadata_hash;
  };
  const std::string before = hash({});
  EXPECT_EQ(hash({.seed = 2}), before);  // other weights
  EXPECT_NE(hash({.rms_eps = 1e-5F}), before);
}

TEST(TableRow, ShowsTheMeasurement) {
  const std::string row =
      table_row(measurement_line("r1", point_with_budget(), measurement()), /*against=*/false);
  EXPECT_THAT(row, HasSubstr("4096"));
  EXPECT_THAT(row, HasSubstr("snapkv"));
  EXPECT_THAT(row, HasSubstr("2.00 +-0.15"));
  EXPECT_THAT(row, HasSubstr("40.0"));
}

TEST(TableRow, ShowsAFailure) {
  EXPECT_THAT(table_row(failure_line("r1", point_with_budget(), "out of memory"), true),
              HasSubstr("out of memory"));
}

}  // namespace
}  // namespace plateau::bench

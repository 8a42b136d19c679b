// Which figures are made of which records, and with what numbers.
#include <gmock/gmock.h>

#include "report/bench_figures.h"
#include "report/eval_figures.h"
#include "report/reader.h"
#include "report/report_lines.h"

namespace plateau::report {
namespace {

using testing::answer_line;
using testing::bench_line;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using testing::eval_header;
using testing::fingerprint_line;
using ::testing::HasSubstr;
using testing::json;
using testing::write_lines;

Records read(std::vector<json> lines) {
  const test::TempDir dir;
  return read_records({write_lines(dir, "r.jsonl", lines)});
}

const Section* find(const std::vector<Section>& sections, const std::string& id) {
  for (const Section& section : sections) {
    if (section.id == id) return &section;
  }
  return nullptr;
}

std::vector<std::string> names(const Plot& plot) {
  std::vector<std::string> names;
  for (const Series& s : plot.series) names.push_back(s.name);
  return names;
}

json with_peak(int mib) { return {{"peak_anon_bytes", int64_t{mib} << 20}}; }

TEST(BenchSections, MemoryOverTokensPerSetting) {
  const Records records =
      read({fingerprint_line(), bench_line(4096, 256, with_peak(41)),
            bench_line(1024, 256, with_peak(40)), bench_line(1024, "full", with_peak(50)),
            bench_line(4096, "full", with_peak(90))});
  const auto sections = bench_sections(records);
  const Section* memory = find(sections, "memory");
  ASSERT_NE(memory, nullptr);
  ASSERT_EQ(memory->figures.size(), 1u);
  const Figure& figure = memory->figures[0];
  EXPECT_THAT(names(figure.plot), ElementsAre("full cache", "snapkv, 256 tokens"));
  EXPECT_THAT(figure.plot.series[0].y, ElementsAre(50, 90));
  EXPECT_THAT(figure.plot.series[1].x, ElementsAre(1024, 4096));
  EXPECT_THAT(figure.plot.series[1].y, ElementsAre(40, 41));
  EXPECT_EQ(figure.plot.series[0].role, Role::kFullCache);
  EXPECT_EQ(figure.table.rows.size(), 4u);
  EXPECT_EQ(figure.sources.size(), 1u);
  EXPECT_EQ(find(sections, "profile"), nullptr);
  EXPECT_EQ(find(sections, "block"), nullptr);
  EXPECT_EQ(find(sections, "decode"), nullptr);
}

TEST(BenchSections, PeaksOfASharedProcessAreNotShown) {
  EXPECT_EQ(
      find(bench_sections(read({fingerprint_line(), bench_line(1024, 256, {{"isolated", false}})})),
           "memory"),
      nullptr);
}

TEST(BenchSections, TheLastMeasurementOfAPointCounts) {
  const auto sections =
      bench_sections(read({fingerprint_line(), bench_line(1024, 256, with_peak(40)),
                           bench_line(1024, 256, with_peak(44))}));
  EXPECT_THAT(find(sections, "memory")->figures[0].plot.series[0].y, ElementsAre(44));
}

TEST(BenchSections, LlamaCppBesideOurs) {
  const auto spread = [](double ms) { return json{{"median", ms}, {"min", ms}, {"max", ms}}; };
  const json against = {
      {"llama_cpp", {{"ubatch", 512}, {"ttft_ms", spread(3000)}, {"decode_tok_s", nullptr}}},
      {"speedup", {{"ttft", spread(3)}, {"decode", nullptr}}}};
  const Records records = read({fingerprint_line(), bench_line(1024, 256, against)});
  const auto sections = bench_sections(records);
  const Plot& plot = find(sections, "ttft")->figures[0].plot;
  EXPECT_THAT(names(plot), ElementsAre("snapkv, 256 tokens", "llama.cpp, full cache"));
  EXPECT_THAT(plot.series[1].y, ElementsAre(DoubleEq(3)));
  EXPECT_EQ(plot.series[1].role, Role::kLlamaCpp);
  EXPECT_THAT(plot.series[0].low, ElementsAre(DoubleEq(0.9)));
  const auto keys = bench_key_figures(records);
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_THAT(keys[0].value, HasSubstr("3"));
}

TEST(BenchSections, BlocksAndBulk) {
  const Records records = read({fingerprint_line(), bench_line(4096, 256, {{"block", 128}}),
                                bench_line(4096, 256, {{"block", 512}}),
                                bench_line(4096, 256, {{"block", 512}, {"bulk", false}})});
  const auto sections = bench_sections(records);
  const Plot& block = find(sections, "block")->figures[0].plot;
  ASSERT_EQ(block.series.size(), 1u);
  EXPECT_THAT(block.series[0].x, ElementsAre(128, 512));
  const Plot& bulk = find(sections, "bulk")->figures[0].plot;
  EXPECT_THAT(names(bulk), ElementsAre("bulk, then blocks", "blocks only"));
  EXPECT_EQ(bulk.series[0].labels, bulk.series[1].labels);
}

TEST(BenchSections, AProfileIsSharesOfAHundred) {
  const json profile = {{"profile",
                         {{"linear_ms", 600},
                          {"attention_ms", 300},
                          {"signals_ms", 50},
                          {"other_ms", 44},
                          {"prefill_ms", 1010}}}};
  const auto sections = bench_sections(read({fingerprint_line(), bench_line(4096, 256, profile)}));
  double sum = 0;
  for (const Series& s : find(sections, "profile")->figures[0].plot.series) sum += s.y.at(0);
  EXPECT_NEAR(sum, 100, 1e-9);
  // Of 1000: 600 + 300 + 50 + 44, and 6 on the host.
  EXPECT_NEAR(find(sections, "profile")->figures[0].plot.series[0].y[0], 60, 1e-9);
}

std::vector<json> two_policies() {
  std::vector<json> lines = {eval_header()};
  for (int i = 0; i < 4; ++i) {
    const std::string id = std::to_string(i);
    lines.push_back(answer_line(id, "", "full", true));
    lines.push_back(answer_line(id, "snapkv", 256, i < 3));
    lines.push_back(answer_line(id, "snapkv", 64, i < 2));
    const json needle = {{"needle", {{"tokens", 4}, {"any_share", 0.1}, {"token_share", 0.1}}}};
    lines.push_back(answer_line(id, "random", 64, i < 1, needle));
    lines.push_back(answer_line(id, "random", 256, i < 1, needle));
  }
  return lines;
}

TEST(EvalSections, AccuracyOverBudgetWithStandardErrors) {
  const auto sections = eval_sections(read(two_policies()));
  const Plot& plot = find(sections, "accuracy")->figures[0].plot;
  EXPECT_THAT(names(plot), ElementsAre("full cache", "snapkv", "random"));
  EXPECT_THAT(plot.series[1].x, ElementsAre(64, 256));
  EXPECT_THAT(plot.series[1].y, ElementsAre(0.5, 0.75));
  EXPECT_NEAR(plot.series[1].low[0], 0.5 - 0.25, 1e-12);
  EXPECT_NEAR(plot.series[1].high[0], 0.5 + 0.25, 1e-12);
  EXPECT_EQ(find(sections, "resolution"), nullptr);
  EXPECT_EQ(find(sections, "block-accuracy"), nullptr);
}

TEST(EvalSections, KeptNeedlesWithTheirCorrelation) {
  const auto sections = eval_sections(read(two_policies()));
  const Figure& figure = find(sections, "needle")->figures[0];
  EXPECT_EQ(figure.plot.mark, Mark::kPoints);
  EXPECT_THAT(figure.note, HasSubstr("over 5 settings"));
}

TEST(EvalSections, LowerResolution) {
  std::vector<json> lines = two_policies();
  lines.push_back(
      answer_line("0", "", "full", false,
                  {{"setting", "resize:180"}, {"resize", 180}, {"visual_tokens", 180}}));
  const auto sections = eval_sections(read(lines));
  const Plot& plot = find(sections, "resolution")->figures[0].plot;
  EXPECT_EQ(plot.series.back().name, "lower resolution");
  EXPECT_THAT(plot.series.back().x, ElementsAre(180));
  EXPECT_THAT(plot.series.back().y, ElementsAre(0));
}

TEST(Correlation, AgainstValuesByHand) {
  EXPECT_NEAR(*correlation({1, 2, 3}, {2, 4, 6}), 1, 1e-12);
  EXPECT_NEAR(*correlation({1, 2, 3}, {3, 2, 1}), -1, 1e-12);
  // Deviations (-1, 0, 1) and (-2/3, 1/3, 1/3): 1 / sqrt(2 * 2/3).
  EXPECT_NEAR(*correlation({1, 2, 3}, {0, 1, 1}), 0.8660254037844386, 1e-12);
  EXPECT_FALSE(correlation({1, 2}, {1, 2}).has_value());
  EXPECT_FALSE(correlation({1, 1, 1}, {1, 2, 3}).has_value());
}

}  // namespace
}  // namespace plateau::report

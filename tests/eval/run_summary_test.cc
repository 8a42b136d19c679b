#include "eval/run_summary.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace plateau::eval {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::ordered_json;

const Setting kFull = {};
const Setting kSmall = {.policy = "snapkv", .budget = 64};

ResultRecord answer(const Setting& setting, const std::string& id, bool right) {
  ResultRecord record;
  record.id = id;
  record.setting = setting;
  record.score = right ? 1 : 0;
  record.right = right;
  return record;
}

/// One answer per letter: r right, w wrong, e error.
void add(std::vector<ResultRecord>& records, const Setting& setting, const std::string& outcomes) {
  for (size_t i = 0; i < outcomes.size(); ++i) {
    ResultRecord record = answer(setting, std::to_string(i), outcomes[i] == 'r');
    record.is_error = outcomes[i] == 'e';
    records.push_back(record);
  }
}

TEST(Summary, ComparesWithTheFullCacheOverCommonQuestions) {
  std::vector<ResultRecord> records;
  add(records, kSmall, "rwrwwwwer");
  add(records, kFull, "rrrrrrwre");
  const RunSummary summary = summarize(records);
  ASSERT_EQ(summary.settings.size(), 2U);
  const SettingSummary& full = summary.settings[0];  // first, though it came second
  EXPECT_TRUE(full.setting.is_reference());
  EXPECT_FALSE(full.paired);
  EXPECT_EQ(full.n, 8);
  EXPECT_EQ(full.n_errors, 1);
  EXPECT_EQ(full.n_right, 7);
  EXPECT_DOUBLE_EQ(full.accuracy.mean, 7.0 / 8);
  const SettingSummary& small = summary.settings[1];
  ASSERT_TRUE(small.paired);
  EXPECT_EQ(small.paired->reference, "full");
  EXPECT_EQ(small.paired->n_pairs, 7);  // neither 7 nor 8, which one side could not answer
  EXPECT_EQ(small.paired->n_only_reference, 4);
  EXPECT_EQ(small.paired->n_only_this, 0);
  EXPECT_DOUBLE_EQ(small.paired->difference.mean, -4.0 / 7);
  EXPECT_DOUBLE_EQ(small.paired->mcnemar_p, 2.0 / 16);
}

TEST(Summary, TheReferenceHasTheSameBlocksWhereThereIsOne) {
  std::vector<ResultRecord> records;
  add(records, kFull, "rr");
  add(records, {.block = 32}, "ww");
  add(records, {.policy = "snapkv", .budget = 64, .block = 32}, "rr");
  add(records, {.policy = "snapkv", .budget = 64, .block = 16}, "rr");
  const RunSummary summary = summarize(records);
  ASSERT_TRUE(summary.settings[1].paired);
  EXPECT_EQ(summary.settings[1].paired->reference, "full");  // blocks against blocks
  EXPECT_EQ(summary.settings[2].paired->reference, "full/block=32");
  EXPECT_EQ(summary.settings[3].paired->reference, "full");
}

TEST(Summary, WithoutAFullCacheThereIsNoComparison) {
  std::vector<ResultRecord> records;
  add(records, kSmall, "rw");
  EXPECT_FALSE(summarize(records).settings[0].paired);
  EXPECT_EQ(to_json(summarize(records))[0]["paired"], nullptr);
}

TEST(Summary, TakesMeansMaximaAndMedians) {
  std::vector<ResultRecord> records;
  add(records, kSmall, "rrwe");
  for (int i = 0; i < 4; ++i) {
    ResultRecord& record = records[static_cast<size_t>(i)];
    record.kind = std::string(i == 1 ? "b" : "a");
    record.prefill_ms = 10 * (i + 1);
    record.total_ms = 100;
    record.kv_bytes = 1000 - i;
    record.peak_anon_bytes = 2000 + i;
    record.visual_tokens = 50 + i;
    record.encoded_tiles = i == 0 ? 5 : 0;
    record.ttft_ms = 7 + i;
    if (i < 2) {
      record.needle =
          KeptNeedle{.tokens = 2, .any_share = {1, 0.5}, .token_share = {0.5, i == 0 ? 0.0 : 0.5}};
    }
  }
  const SettingSummary summary = summarize(records).settings[0];
  EXPECT_EQ(summary.prefill_ms, 20);
  EXPECT_EQ(summary.total_ms, 300);
  EXPECT_EQ(summary.kv_bytes, 1000);
  EXPECT_EQ(summary.peak_anon_bytes, 2002);
  EXPECT_EQ(summary.visual_tokens, 51);
  EXPECT_EQ(summary.ttft_ms, 7);  // of the one that encoded
  EXPECT_EQ(summary.by_kind.at("a").n, 2);
  EXPECT_EQ(summary.by_kind.at("a").accuracy.mean, 0.5);
  EXPECT_EQ(summary.by_kind.at("b").accuracy.mean, 1);
  ASSERT_TRUE(summary.needle);
  EXPECT_EQ(summary.needle->n, 2);
  EXPECT_DOUBLE_EQ(summary.needle->any_share, 0.75);
  EXPECT_DOUBLE_EQ(summary.needle->token_share, (0.25 + 0.5) / 2);
  EXPECT_THAT(summary.needle->token_share_by_layer, ::testing::ElementsAre(0.5, 0.25));
}

std::vector<ResultRecord> with_needles(const std::vector<std::pair<double, int>>& kept_and_right) {
  std::vector<ResultRecord> records;
  int budget = 0;
  for (const auto& [kept, n_right] : kept_and_right) {
    const Setting setting = budget == 0 ? kFull : Setting{.policy = "snapkv", .budget = budget};
    for (int i = 0; i < 10; ++i) {
      ResultRecord record = answer(setting, std::to_string(i), i < n_right);
      record.needle = KeptNeedle{.tokens = 1, .any_share = {kept}, .token_share = {kept * kept}};
      records.push_back(record);
    }
    budget += 10;
  }
  return records;
}

TEST(Summary, CorrelatesKeptNeedlesAndAccuracyOverSettings) {
  std::vector<ResultRecord> records = with_needles({{1, 9}, {0.5, 5}, {0.25, 3}});
  // Kept whole but shrunk: no point of this curve.
  ResultRecord shrunk = answer({.resize = 5}, "0", false);
  shrunk.needle = KeptNeedle{.tokens = 1, .any_share = {1}, .token_share = {1}};
  records.push_back(shrunk);
  const RunSummary summary = summarize(records);
  ASSERT_EQ(summary.correlations.size(), 2U);
  EXPECT_EQ(summary.correlations[0].n_settings, 3);
  EXPECT_NEAR(summary.correlations[0].pearson.value(), 1, 1e-12);
  EXPECT_LT(summary.correlations[1].pearson.value(), 1 - 1e-4);
  EXPECT_NEAR(summary.correlations[1].spearman.value(), 1, 1e-12);
  const Json line = to_json(summary).back();
  EXPECT_EQ(line["type"], "correlation");
  EXPECT_EQ(line["x"], "needle.token_share");
}

TEST(Summary, TwoSettingsAreNoCurveAndConstantsHaveNoCorrelation) {
  EXPECT_THAT(summarize(with_needles({{1, 9}, {0.5, 5}})).correlations, IsEmpty());
  const RunSummary flat = summarize(with_needles({{1, 9}, {1, 5}, {1, 4}}));
  EXPECT_FALSE(flat.correlations[0].pearson);
  EXPECT_EQ(to_json(flat).back()["pearson"], nullptr);
}

TEST(Summary, TheTableHasARowPerSetting) {
  std::vector<ResultRecord> records;
  add(records, kFull, "rrrw");
  add(records, kSmall, "rwwe");
  add(records, {.policy = "random", .budget = 64}, "eeee");
  const std::string table = to_table(summarize(records));
  EXPECT_THAT(table, AllOf(HasSubstr("full"), HasSubstr("0.750 +- 0.217"), HasSubstr("snapkv:64"),
                           HasSubstr("-0.667 +- 0.272"), HasSubstr("errors: 4")));
}

TEST(Summary, TheTableSaysWhenABudgetCannotMatter) {
  std::vector<ResultRecord> records;
  add(records, kFull, "r");
  add(records, kSmall, "r");
  records[0].blocks = records[1].blocks = 1;
  EXPECT_THAT(to_table(summarize(records)), HasSubstr("--block"));
  records[1].blocks = 2;
  EXPECT_THAT(to_table(summarize(records)), ::testing::Not(HasSubstr("--block")));
}

TEST(Summary, OfNothingIsNothing) {
  EXPECT_THAT(summarize({}).settings, IsEmpty());
  EXPECT_THAT(to_json(summarize({})), IsEmpty());
}

}  // namespace
}  // namespace plateau::eval

#include "eval/run_record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "eval/eval_test_support.h"

namespace plateau::eval {
namespace {

ResultRecord example() {
  ResultRecord record;
  record.id = "a\"b";
  record.kind = "single";
  record.setting = {.policy = "keydiff", .budget = 64, .block = 32};
  record.answer = "B";
  record.expected = "A";
  record.choice = 1;
  record.log_probs = {-1.5, -0.25};
  record.score = 0.5;
  record.needle = KeptNeedle{.tokens = 4, .any_share = {1, 0.5}, .token_share = {0.75, 0.25}};
  record.prompt_tokens = 100;
  record.visual_tokens = 90;
  record.blocks = 3;
  record.kept_tokens = 64;
  record.kv_bytes = 1 << 20;
  record.peak_anon_bytes = 1 << 25;
  record.encoded_tiles = 3;
  record.encode_ms = 1.25;
  record.prefill_ms = 2.5;
  record.ttft_ms = 4;
  record.total_ms = 5;
  return record;
}

TEST(ResultRecord, ComesBackFromItsLine) {
  const nlohmann::ordered_json json = to_json(example());
  const std::string line = to_line(json);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const ResultRecord back = record_from_json(nlohmann::ordered_json::parse(line));
  EXPECT_EQ(to_json(back), json);
  EXPECT_EQ(back.setting, example().setting);
  EXPECT_EQ(json["choice"], 1);
  EXPECT_EQ(json["needle"]["any_share"], 0.75);
  EXPECT_EQ(json["needle"]["token_share"], 0.5);
}

TEST(ResultRecord, OfAnErrorSaysWhy) {
  ResultRecord record = example();
  record.is_error = true;
  record.error_code = "not_found";
  record.error_message = "[x.png] cannot be opened";
  const nlohmann::ordered_json json = to_json(record);
  EXPECT_EQ(json["type"], "error");
  EXPECT_FALSE(json.contains("score"));
  const ResultRecord back = record_from_json(json);
  EXPECT_TRUE(back.is_error);
  EXPECT_EQ(to_json(back), json);
}

TEST(ResultRecord, BytesThatAreNoTextDoNotBreakTheLine) {
  ResultRecord record = example();
  record.answer = "\xFF\n";
  EXPECT_EQ(record_from_json(nlohmann::ordered_json::parse(to_line(to_json(record)))).answer,
            "\xEF\xBF\xBD\n");
}

TEST(ResultRecord, NeedsEveryField) {
  const nlohmann::ordered_json json = to_json(example());
  for (const auto& [field, value] : json.items()) {
    if (field == "log_probs") continue;
    nlohmann::ordered_json without = json;
    without.erase(field);
    EXPECT_ANY_THROW(record_from_json(without)) << field;
  }
}

}  // namespace
}  // namespace plateau::eval

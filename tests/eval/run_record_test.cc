#include "eval/run_record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "eval/eval_test_support.h"
#include "eval/readers/json_record.h"

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
  record.score = 0;
  record.needle = KeptNeedle{.tokens = 4, .any_share = {1, 0.5}, .token_share = {0.75, 0.25}};
  record.media_bytes = 12345;
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

ResultRecord read_back(const std::string& line) {
  return read_result(JsonRecord(nlohmann::json::parse(line), "place"));
}

TEST(ResultRecord, ComesBackFromItsLine) {
  const nlohmann::ordered_json json = to_json(example());
  const std::string line = to_line(json);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const ResultRecord back = read_back(line);
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
  const ResultRecord back = read_back(to_line(json));
  EXPECT_TRUE(back.is_error);
  EXPECT_EQ(to_json(back), json);
}

TEST(ResultRecord, BytesThatAreNoTextDoNotBreakTheLine) {
  ResultRecord record = example();
  record.answer = "\xFF\n";
  EXPECT_EQ(read_back(to_line(to_json(record))).answer, "\xEF\xBF\xBD\n");
}

std::string complaint_about(const nlohmann::ordered_json& json) {
  try {
    read_back(to_line(json));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    return error.what();
  }
  return "";
}

TEST(ResultRecord, NeedsEveryField) {
  const nlohmann::ordered_json json = to_json(example());
  for (const auto& [field, value] : json.items()) {
    // Null where they do not apply.
    if (field == "log_probs" || field == "choice" || field == "needle" || field == "resize") {
      continue;
    }
    nlohmann::ordered_json without = json;
    without.erase(field);
    EXPECT_NE(complaint_about(without).find("[place] field"), std::string::npos) << field;
  }
}

TEST(ResultRecord, ThatContradictsItselfIsRefused) {
  const std::pair<const char*, nlohmann::ordered_json> changes[] = {
      {"score", 2},
      {"score", -0.5},
      {"score", 0.5},  // of a choice
      {"score", 1},    // which is not "right"
      {"score", "1"},
      {"right", true},
      {"right", 1},
      {"choice", -2},
      {"choice", 1.5},
      {"id", ""},
      {"type", "answer"},
      {"setting", "keydiff:65"},
      {"policy", "full"},
      {"budget", 0},
      {"budget", "half"},
      {"resize", 7},
      {"block", "many"},
      {"strict", "no"},
      {"prompt_tokens", 10},
      {"kept_tokens", 101},
      {"blocks", -1},
      {"kv_bytes", 1.5},
      {"ttft_ms", -1},
      {"total_ms", nullptr},
      {"log_probs", {1, "x"}},
      {"needle", 3}};
  for (const auto& [field, value] : changes) {
    nlohmann::ordered_json json = to_json(example());
    json[field] = value;
    EXPECT_NE(complaint_about(json).find("[place"), std::string::npos) << field << value;
  }
  for (const char* field : {"any_share", "token_share"}) {
    nlohmann::ordered_json json = to_json(example());
    json["needle"][field] = 0.1;
    EXPECT_NE(complaint_about(json).find("the mean over the layers"), std::string::npos) << field;
    json = to_json(example());
    json["needle"][std::string(field) + "_by_layer"] = {2, 1};
    EXPECT_NE(complaint_about(json), "") << field;
  }
}

}  // namespace
}  // namespace plateau::eval

#include "eval/run_record.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/check.h"
#include "eval/readers/json_record.h"

namespace plateau::eval {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kRounding = 1e-6;  // of means that were written and read again
constexpr int64_t kMostChoices = 1000;

double mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double KeptNeedle::any() const { return mean(any_share); }
double KeptNeedle::token() const { return mean(token_share); }

Json to_json(const ResultRecord& record) {
  Json json = {{"type", record.is_error ? "error" : "result"}, {"id", record.id}};
  write_setting(record.setting, json);
  json["kind"] = record.kind;
  if (record.is_error) {
    json["code"] = record.error_code;
    json["message"] = record.error_message;
    return json;
  }
  json["answer"] = record.answer;
  json["expected"] = record.expected;
  json["choice"] = record.choice ? Json(*record.choice) : Json(nullptr);
  if (!record.log_probs.empty()) json["log_probs"] = record.log_probs;
  json["score"] = record.score;
  json["right"] = record.right;
  if (record.needle) {
    json["needle"] = {{"tokens", record.needle->tokens},
                      {"any_share", record.needle->any()},
                      {"token_share", record.needle->token()},
                      {"any_share_by_layer", record.needle->any_share},
                      {"token_share_by_layer", record.needle->token_share}};
  } else {
    json["needle"] = nullptr;
  }
  json["media_bytes"] = record.media_bytes;
  json["prompt_tokens"] = record.prompt_tokens;
  json["visual_tokens"] = record.visual_tokens;
  json["blocks"] = record.blocks;
  json["kept_tokens"] = record.kept_tokens;
  json["kv_bytes"] = record.kv_bytes;
  json["peak_anon_bytes"] = record.peak_anon_bytes;
  json["encoded_tiles"] = record.encoded_tiles;
  json["encode_ms"] = record.encode_ms;
  json["prefill_ms"] = record.prefill_ms;
  json["ttft_ms"] = record.ttft_ms;
  json["total_ms"] = record.total_ms;
  return json;
}

namespace {

int64_t count_of(const JsonRecord& json, const char* field) {
  const int64_t count = json.whole_number(field).value_or(-1);
  if (count < 0) json.fail(field, "a whole number from 0 on");
  return count;
}

double milliseconds(const JsonRecord& json, const char* field) {
  const double ms = json.number(field);
  if (ms < 0) json.fail(field, "0 or more milliseconds");
  return ms;
}

std::vector<double> shares(const JsonRecord& json, const char* field) {
  std::vector<double> values = json.numbers(field);
  const bool fits = !values.empty() && std::all_of(values.begin(), values.end(), [](double share) {
    return share >= 0 && share <= 1 + kRounding;
  });
  if (!fits) json.fail(field, "shares of 0 to 1");
  return values;
}

void check_mean(const JsonRecord& json, const char* field, double expected) {
  if (std::abs(json.number(field) - expected) > kRounding) {
    json.fail(field, fmt::format("{:.6g}, the mean over the layers", expected));
  }
}

KeptNeedle read_needle(const JsonRecord& json) {
  KeptNeedle needle = {.tokens = count_of(json, "tokens"),
                       .any_share = shares(json, "any_share_by_layer"),
                       .token_share = shares(json, "token_share_by_layer")};
  if (needle.token_share.size() != needle.any_share.size()) {
    json.fail("token_share_by_layer", "as many shares as in any_share_by_layer");
  }
  check_mean(json, "any_share", needle.any());
  check_mean(json, "token_share", needle.token());
  return needle;
}

void read_score(const JsonRecord& json, ResultRecord& record) {
  record.score = json.number("score");
  record.right = json.truth("right");
  if (record.score < 0 || record.score > 1) json.fail("score", "0 to 1");
  if (record.right != (record.score == 1)) {
    json.fail("right", fmt::format("{} with a score of {}", record.score == 1, record.score));
  }
  if (!json.has("choice")) return;
  const int64_t choice = json.whole_number("choice").value_or(-2);
  if (choice < -1 || choice > kMostChoices)
    json.fail("choice", "the index of an option, -1 or null");
  if (record.score != 0 && record.score != 1) json.fail("score", "0 or 1 for a choice");
  if (choice == -1 && record.right) json.fail("choice", "an option that is right");
  record.choice = static_cast<int>(choice);
}

}  // namespace

ResultRecord read_result(const JsonRecord& json) {
  ResultRecord record;
  const std::string type = json.text({"type"});
  record.is_error = type == "error";
  if (!record.is_error && type != "result") json.fail("type", "result or error");
  record.id = json.text({"id"});
  if (record.id.empty()) json.fail("id", "the id of a question");
  record.kind = json.text({"kind"});
  record.setting = read_setting(json);
  if (record.is_error) {
    record.error_code = json.text({"code"});
    record.error_message = json.text({"message"});
    return record;
  }
  record.answer = json.text({"answer"});
  record.expected = json.text({"expected"});
  read_score(json, record);
  if (json.has("log_probs")) record.log_probs = json.numbers("log_probs");
  if (json.has("needle")) record.needle = read_needle(json.object("needle"));
  record.media_bytes = count_of(json, "media_bytes");
  record.prompt_tokens = count_of(json, "prompt_tokens");
  record.visual_tokens = count_of(json, "visual_tokens");
  record.blocks = count_of(json, "blocks");
  record.kept_tokens = count_of(json, "kept_tokens");
  if (record.visual_tokens > record.prompt_tokens) {
    json.fail("visual_tokens", "at most prompt_tokens");
  }
  if (record.kept_tokens > record.prompt_tokens) json.fail("kept_tokens", "at most prompt_tokens");
  record.kv_bytes = count_of(json, "kv_bytes");
  record.peak_anon_bytes = count_of(json, "peak_anon_bytes");
  record.encoded_tiles = count_of(json, "encoded_tiles");
  record.encode_ms = milliseconds(json, "encode_ms");
  record.prefill_ms = milliseconds(json, "prefill_ms");
  record.ttft_ms = milliseconds(json, "ttft_ms");
  record.total_ms = milliseconds(json, "total_ms");
  return record;
}

std::string to_line(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace plateau::eval

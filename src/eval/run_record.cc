#include "eval/run_record.h"

#include <nlohmann/json.hpp>
#include <numeric>

#include "base/check.h"

namespace plateau::eval {
namespace {

using Json = nlohmann::ordered_json;

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

ResultRecord record_from_json(const Json& json) {
  ResultRecord record;
  const std::string type = json.at("type").get<std::string>();
  record.is_error = type == "error";
  if (!record.is_error && type != "result") {
    throw_error(ErrorCode::kCorrupt, "[type] expected result or error, got {}", type);
  }
  record.id = json.at("id").get<std::string>();
  record.kind = json.at("kind").get<std::string>();
  record.setting = read_setting(json);
  if (record.is_error) {
    record.error_code = json.at("code").get<std::string>();
    record.error_message = json.at("message").get<std::string>();
    return record;
  }
  record.answer = json.at("answer").get<std::string>();
  record.expected = json.at("expected").get<std::string>();
  if (const Json& choice = json.at("choice"); !choice.is_null()) record.choice = choice.get<int>();
  if (json.contains("log_probs")) {
    record.log_probs = json.at("log_probs").get<std::vector<double>>();
  }
  record.score = json.at("score").get<double>();
  record.right = json.at("right").get<bool>();
  if (const Json& needle = json.at("needle"); !needle.is_null()) {
    record.needle =
        KeptNeedle{.tokens = needle.at("tokens").get<int64_t>(),
                   .any_share = needle.at("any_share_by_layer").get<std::vector<double>>(),
                   .token_share = needle.at("token_share_by_layer").get<std::vector<double>>()};
  }
  record.prompt_tokens = json.at("prompt_tokens").get<int64_t>();
  record.visual_tokens = json.at("visual_tokens").get<int64_t>();
  record.blocks = json.at("blocks").get<int64_t>();
  record.kept_tokens = json.at("kept_tokens").get<int64_t>();
  record.kv_bytes = json.at("kv_bytes").get<int64_t>();
  record.peak_anon_bytes = json.at("peak_anon_bytes").get<int64_t>();
  record.encoded_tiles = json.at("encoded_tiles").get<int64_t>();
  record.encode_ms = json.at("encode_ms").get<double>();
  record.prefill_ms = json.at("prefill_ms").get<double>();
  record.ttft_ms = json.at("ttft_ms").get<double>();
  record.total_ms = json.at("total_ms").get<double>();
  return record;
}

std::string to_line(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace plateau::eval

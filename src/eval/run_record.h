// One line of a results file: what one question under one setting came to (docs/eval.md).
// Tested by tests/eval/run_record_test.cc.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "eval/run_settings.h"

namespace plateau::eval {

/// How much of the needles the cache held when decoding began. "Pairs" are (layer, kv head) pairs;
/// several needles are averaged.
struct KeptNeedle {
  int64_t tokens = 0;               // visual tokens that the needles' boxes touch
  std::vector<double> any_share;    // by layer: share of its heads with at least one of them
  std::vector<double> token_share;  // by layer: share of the tokens held, mean over its heads

  double any() const;    // mean over layers
  double token() const;  // mean over layers
};

struct ResultRecord {
  std::string id;
  std::string kind;
  Setting setting;

  // An answer, or why there is none.
  bool is_error = false;
  std::string error_code;
  std::string error_message;

  std::string answer;             // generated text
  std::string expected;           // the right answer, or the right option's letter
  std::optional<int> choice;      // multiple choice: index of the option chosen; -1: none
  std::vector<double> log_probs;  // likelihood judging: by option
  double score = 0;               // 0 to 1
  bool right = false;
  std::optional<KeptNeedle> needle;

  int64_t media_bytes = 0;  // of the question's pictures and films when it was asked
  int64_t prompt_tokens = 0;
  int64_t visual_tokens = 0;
  int64_t blocks = 0;
  int64_t kept_tokens = 0;      // per layer and kv head when decoding began
  int64_t kv_bytes = 0;         // the arena
  int64_t peak_anon_bytes = 0;  // of the process while it worked on this pair
  int64_t encoded_tiles = 0;    // 0: all came from the embedding cache
  double encode_ms = 0;
  double prefill_ms = 0;
  double ttft_ms = 0;
  double total_ms = 0;
};

nlohmann::ordered_json to_json(const ResultRecord& record);
/// Errors: kCorrupt for a field that is missing, out of its range, or contradicts another.
ResultRecord read_result(const JsonRecord& json);

/// One line of JSON with its line feed; bytes that are no UTF-8 become U+FFFD.
std::string to_line(const nlohmann::ordered_json& json);

}  // namespace plateau::eval

// What all results of an evaluation come to, per setting. Pure.
// Tested by tests/eval/run_summary_test.cc.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "eval/run_record.h"

namespace plateau::eval {

/// This setting against the full cache, over the questions that both answered.
struct PairedDifference {
  std::string reference;  // name of the setting compared with
  int64_t n_pairs = 0;
  int64_t n_only_reference = 0;  // right with the reference alone
  int64_t n_only_this = 0;       // right with this setting alone
  MeanWithError difference;      // of scores, this minus the reference
  double mcnemar_p = 1;
};

struct KindSummary {
  int64_t n = 0;
  MeanWithError accuracy;
};

/// Means over the questions whose needles are known.
struct NeedleSummary {
  int64_t n = 0;
  double any_share = 0;
  double token_share = 0;
  std::vector<double> any_share_by_layer;
  std::vector<double> token_share_by_layer;
};

struct SettingSummary {
  Setting setting;
  int64_t n = 0;  // answered
  int64_t n_errors = 0;
  int64_t n_right = 0;
  MeanWithError accuracy;  // of scores
  std::optional<PairedDifference> paired;
  std::map<std::string, KindSummary> by_kind;
  std::optional<NeedleSummary> needle;
  double visual_tokens = 0;     // mean
  double blocks = 0;            // mean
  double kept_tokens = 0;       // mean
  int64_t kv_bytes = 0;         // largest
  int64_t peak_anon_bytes = 0;  // largest
  double encode_ms = 0;         // median of those that encoded anything
  double prefill_ms = 0;        // median
  double ttft_ms = 0;           // median of those that encoded everything themselves
  double total_ms = 0;          // sum
};

/// How the kept-needle rate and accuracy go together over the settings that evict or keep all of a
/// picture at native detail.
struct Correlation {
  std::string x;  // "needle.any_share" or "needle.token_share"
  int64_t n_settings = 0;
  std::optional<double> pearson;
  std::optional<double> spearman;
};

struct RunSummary {
  std::vector<SettingSummary> settings;   // references first, then in order of appearance
  std::vector<Correlation> correlations;  // none with fewer than 3 settings
};

RunSummary summarize(const std::vector<ResultRecord>& records);

/// The records of type "summary" and "correlation" (docs/eval.md).
std::vector<nlohmann::ordered_json> to_json(const RunSummary& summary);

/// For people: one row per setting.
std::string to_table(const RunSummary& summary);

}  // namespace plateau::eval

// What a report is made of: the records of result files, checked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace plateau::report {

/// Where figures come from, as it stands under each of them.
struct Source {
  std::string file;     // as given
  std::string command;  // empty: not recorded
  std::string machine;  // likewise
  std::string build;
  std::string model;
  std::string date;
};

struct Spread {
  double median = 0, min = 0, max = 0;
};

/// One measurement of `plateau bench` (docs/bench.md).
struct BenchRecord {
  size_t source = 0;    // in Records::sources
  std::string model;    // file name
  std::string machine;  // CPU, cores and threads
  std::string input;    // "tokens", "tiles" or "image"
  bool isolated = false;
  int64_t visual_tokens = 0;
  std::optional<int64_t> budget;  // nothing: full cache
  std::string policy;
  std::string block;  // "0" is the default
  bool bulk = true;
  bool strict = false;
  std::string cache_types;  // "f16/f16"
  Spread ttft_ms;
  double encode_ms = 0, prefill_ms = 0;                // medians
  double score_ms = 0, select_ms = 0, compact_ms = 0;  // medians
  std::optional<Spread> decode_tok_s;
  int64_t kv_bytes = 0, kv_bytes_planned = 0, compute_bytes = 0, peak_anon_bytes = 0;
  std::optional<int64_t> peak_anon_bytes_planned;
  struct Profile {
    double linear_ms = 0, attention_ms = 0, signals_ms = 0, other_ms = 0, prefill_ms = 0;
  };
  std::optional<Profile> profile;
  struct Llama {
    Spread ttft_ms;
    std::optional<Spread> decode_tok_s;
    Spread speedup;
    std::optional<Spread> decode_speedup;
  };
  std::optional<Llama> llama;
};

/// One measurement that failed.
struct BenchFailure {
  size_t source = 0;
  std::string point;  // what was to be measured
  std::string error;
};

/// All answers of one setting of `plateau eval` (docs/eval.md), summed up.
struct EvalSetting {
  size_t source = 0;
  std::string set;  // the question file or folder and the model
  std::string name;
  std::string policy;
  std::optional<int64_t> budget;
  std::optional<int64_t> resize;
  std::string block;  // "default" or a size
  bool bulk = true;
  bool strict = false;
  int64_t n = 0, n_errors = 0;
  double accuracy = 0, standard_error = 0;    // mean score; sqrt(variance / n)
  double visual_tokens = 0, kept_tokens = 0;  // means
  int64_t n_needle = 0;                       // answers whose needle's place is known
  double any_share = 0, token_share = 0;      // kept needles, means over them
  double prefill_ms = 0;                      // median
  int64_t kv_bytes = 0, peak_anon_bytes = 0;  // largest
};

/// A record's block in tokens; nothing for the default and for structural units.
std::optional<double> block_number(const std::string& block);

struct Records {
  std::vector<Source> sources;
  std::vector<BenchRecord> bench;
  std::vector<BenchFailure> failures;
  std::vector<EvalSetting> eval;
};

}  // namespace plateau::report

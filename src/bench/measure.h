// One measurement: loads the model, warms up, repeats, alternates with llama.cpp where asked for.
// Tested by tests/bench/measure_test.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/bench_point.h"
#include "bench/plateau_run.h"
#include "bench/statistics.h"

namespace plateau::bench {

/// Shares of one profiled prefill, milliseconds.
struct ProfileTimes {
  double linear_ms = 0;
  double attention_ms = 0;
  double signals_ms = 0;
  double other_ms = 0;
  double prefill_ms = 0;  // of the profiled run: the nodes, scheduling and the host's part
};

struct LlamaMeasurement {
  int n_ubatch = 0;
  Spread ttft_ms;
  std::optional<Spread> decode_tok_s;
  /// Ours over theirs, pair by pair: above 1, Plateau is faster.
  Spread ttft_ratio;
  std::optional<Spread> decode_ratio;
};

struct Measurement {
  PlateauRun first;  // sizes and counts, which are the same in every repeat
  Spread ttft_ms;
  Spread encode_ms;
  Spread prefill_ms;
  Spread score_ms;
  Spread select_ms;
  Spread compact_ms;
  std::optional<Spread> decode_tok_s;              // with n_decode > 0
  int64_t weights_bytes = 0;                       // of the model file and the projector
  int64_t planned_compute_bytes = 0;               // what `plateau plan` says of the same prompt
  std::optional<int64_t> planned_peak_anon_bytes;  // likewise; not for random tiles
  int64_t loaded_anon_bytes = 0;                   // RssAnon of the process with the model loaded
  int64_t peak_anon_bytes = 0;                     // highest RssAnon until the first run ended
  int64_t peak_rss_bytes = 0;                      // the same with mapped files
  std::optional<ProfileTimes> profile;
  std::optional<LlamaMeasurement> llama;
};

/// Peaks are those of the whole process: run each measurement in a process of its own where they
/// matter. Errors: those of LoadedModel, run_plateau and LlamaRun; kCancelled.
Measurement measure(const BenchPoint& point, const CancelPoll& should_cancel);

}  // namespace plateau::bench

// One request of a measurement through Plateau's own engine, step by step, so that each can be
// timed. Tested by tests/bench/measure_test.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/bench_point.h"
#include "bench/node_times.h"
#include "engine/loaded_model.h"

namespace plateau::bench {

/// Times are wall-clock milliseconds.
struct PlateauRun {
  int64_t n_prompt = 0;
  int64_t n_visual = 0;
  int64_t n_blocks = 0;
  int n_largest_block = 0;  // tokens
  double ttft_ms = 0;       // plan, cache, encoding, prefill; without drawing random values
  double encode_ms = 0;
  double prefill_ms = 0;  // of it: running the blocks, eviction included
  double score_ms = 0;    // of prefill, on the host
  double select_ms = 0;
  double compact_ms = 0;
  double decode_ms = 0;  // n_decode tokens
  int n_arena = 0;       // slots per layer and kv head
  int n_kept = 0;        // tokens held when decoding began
  int64_t planned_kv_bytes = 0;
  int64_t kv_bytes = 0;  // allocated
  int64_t compute_bytes = 0;
  int64_t encoder_bytes = 0;
  std::vector<float> logits;  // [n_vocab] after the prompt
};

/// `times` may be null; with it, the run is profiled.
/// Errors: those of plan_point and of the engine; kCancelled.
PlateauRun run_plateau(const BenchPoint& point, engine::LoadedModel& loaded,
                       const CancelPoll& should_cancel, NodeTimes* times);

}  // namespace plateau::bench

// The pinned llama.cpp on the same file and the same rows: full cache, flash attention. What
// `plateau bench --against llama.cpp` compares with.
// Tested by tests/bench/measure_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/bench_point.h"
#include "bench/input.h"
#include "engine/loaded_model.h"

struct llama_model;
struct llama_context;

namespace plateau::bench {

/// Times are wall-clock milliseconds.
struct LlamaTimes {
  double ttft_ms = 0;  // all llama_decode calls of the prompt; its cache was allocated before
  double decode_ms = 0;
  std::vector<float> logits;  // [n_vocab] after the prompt
};

class LlamaRun {
 public:
  /// Same model file, device, threads and cache types as the point; the micro-batch is `n_ubatch`.
  /// Errors: kCorrupt (the file), kResourceExhausted (the context).
  LlamaRun(const BenchPoint& point, const engine::RequestPlan& plan, int n_ubatch,
           const CancelPoll& should_cancel);
  ~LlamaRun();
  LlamaRun(const LlamaRun&) = delete;
  LlamaRun& operator=(const LlamaRun&) = delete;

  /// Runs the prompt from an empty cache, then decodes point.n_decode tokens. `text_rows` as for
  /// RowReader. Errors: kResourceExhausted, kCancelled.
  LlamaTimes run(std::span<const float> text_rows, BenchUnits& units);

 private:
  void decode(std::vector<float>& rows, std::vector<int32_t>& tokens, int first_position);

  const BenchPoint& point_;
  const engine::RequestPlan& plan_;
  int n_ubatch_;
  CancelPoll should_cancel_;
  struct Handles;
  std::unique_ptr<Handles> handles_;
};

}  // namespace plateau::bench

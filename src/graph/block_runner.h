// Runs blocks through the decoder: builds the block's graph, uploads its inputs, computes, and
// reads the logits back. Not thread-safe. Tested by tests/graph/decoder_test.cc against llama.cpp.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/graph_builder.h"
#include "kv/evictor.h"
#include "kv/kv_cache.h"
#include "kv/token_info.h"
#include "model/backend.h"
#include "model/language_model.h"

namespace plateau::graph {

struct Block {
  std::span<const float> embeddings;        // [n_embd, n_rows]
  std::span<const kv::Position> positions;  // [n_rows]
  int n_cached = 0;                         // slots filled before this block
  bool want_logits = false;                 // of the last row that is no proxy
  int n_proxy = 0;  // of the rows, the last ones, whose K and V are not kept
  // With a policy, its eviction signals are computed; the last n_observed rows observe.
  const kv::Policy* policy = nullptr;
  int n_observed = 0;
};

struct BlockResult {
  std::vector<float> logits;  // [n_vocab] of the last kept row; empty when not wanted
  kv::Signals signals;        // empty without a policy
};

/// Sees every named tensor after it was computed; for tests.
using TensorTap = std::function<void(ggml_tensor* tensor)>;

class BlockRunner {
 public:
  /// All three must outlive the runner.
  BlockRunner(const model::LanguageModel& model, const model::Backends& backends,
              kv::KvCache& cache);

  /// Rows of the token embedding: [n_embd, n_tokens]. REQUIRES: every token < n_vocab.
  std::vector<float> embed(std::span<const model::Token> tokens) const;

  /// Stores the block's K and V in slots [n_cached, n_cached + n_rows) of every layer and head.
  /// Errors: kResourceExhausted (compute buffer), kCancelled.
  BlockResult run(const Block& block);

  /// What run() allocates for a block of this shape, by device; also without weights.
  std::vector<model::DeviceBytes> measure(const BlockShape& shape);

  /// Bytes of compute buffers held now.
  int64_t compute_bytes() const;

  void set_tap(TensorTap tap);

 private:
  void set_inputs(const Block& block, const BlockShape& shape, const BlockGraph& graph);

  const model::LanguageModel& model_;
  const model::Backends& backends_;
  kv::KvCache& cache_;
  ggml_backend_sched_ptr sched_;
  std::vector<ggml_fp16_t> mask_;
  TensorTap tap_;
};

}  // namespace plateau::graph

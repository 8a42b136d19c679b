// Our decoder on a file as LlamaOracle runs llama.cpp on it: append tokens or rows in blocks, get
// the logits of the last one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/block_runner.h"
#include "support/tensor_tap.h"

namespace plateau::test {

struct DecoderOptions {
  int n_slot = 1024;
  CacheType type_k = CacheType::kF16;
  CacheType type_v = CacheType::kF16;
};

class Decoder {
 public:
  explicit Decoder(const std::string& path, const DecoderOptions& options = {});

  const model::LanguageModel& model() const { return model_; }
  const kv::KvCache& cache() const { return cache_; }
  graph::BlockRunner& runner() { return runner_; }
  int n_past() const { return n_past_; }

  /// Appends tokens at the next positions, in blocks of `n_block` (0: one block).
  std::vector<float> decode(std::span<const int32_t> tokens, int n_block = 0);
  /// The same for rows of embeddings, [n_embd, n], at `positions` (empty: consecutive ones). What
  /// follows goes on behind the largest component.
  /// Without logits, the result is empty.
  std::vector<float> decode_embeddings(std::span<const float> rows,
                                       std::span<const kv::Position> positions = {},
                                       int n_block = 0, bool want_logits = true);
  std::vector<int32_t> greedy(std::vector<float> logits, int n);

  /// K and V of all layers, the first n_past slots of each head, as they lie in memory.
  std::vector<uint8_t> cache_content() const;

  /// Captures of the computations since clear(); names as in the oracle's.
  TensorTap& tap() { return *tap_; }

 private:
  model::LanguageModel model_;
  model::Backends backends_;
  kv::KvCache cache_;
  std::unique_ptr<TensorTap> tap_;
  graph::BlockRunner runner_;
  int n_past_ = 0;
  int32_t next_pos_ = 0;
};

}  // namespace plateau::test

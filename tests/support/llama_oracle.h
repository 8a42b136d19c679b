// The pinned llama.cpp on the same file in the same process: the answer that ours is compared with.
// CPU only. Not thread-safe; one sequence.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "llama.h"
#include "support/tensor_tap.h"

namespace plateau::test {

struct LlamaOracleOptions {
  int n_ctx = 2048;
  /// The largest block. Both n_batch and n_ubatch: llama.cpp must not cut a block further, because
  /// a kernel's order of summation depends on the number of tokens.
  int n_batch = 512;
  int n_threads = 1;
  ggml_type type_k = GGML_TYPE_F16;
  ggml_type type_v = GGML_TYPE_F16;
  bool flash_attn = true;
  bool repack = true;  // weights in the CPU's own layout where it has one, as llama.cpp does
};

class LlamaOracle {
 public:
  /// Errors: kCorrupt, with llama.cpp's own last words. Some damaged files make llama.cpp abort
  /// instead; see support_test.cc for those that do not.
  explicit LlamaOracle(const std::string& path, const LlamaOracleOptions& options = {});

  const llama_model* model() const { return model_.get(); }
  const llama_vocab* vocab() const { return llama_model_get_vocab(model_.get()); }
  llama_context* context() { return context_.get(); }
  int n_embd() const { return llama_model_n_embd(model_.get()); }
  int n_vocab() const { return llama_vocab_n_tokens(vocab()); }

  std::vector<int32_t> tokenize(const std::string& text, bool add_special,
                                bool parse_special) const;
  std::string detokenize(std::span<const int32_t> tokens) const;

  /// Appends tokens at the next positions, in blocks of `n_block` (0: n_batch).
  /// Returns the logits of the last one, [n_vocab].
  std::vector<float> decode(std::span<const int32_t> tokens, int n_block = 0);

  /// The same for rows of embeddings, [n_embd, n], at consecutive positions.
  std::vector<float> decode_embeddings(std::span<const float> rows, int n_block = 0);

  /// Where a row stands for a model with M-RoPE: time, row, column.
  struct Position {
    int32_t t = 0;
    int32_t h = 0;
    int32_t w = 0;
  };
  /// The same at given positions, in llama.cpp's order (by t, then h, then w), from next_pos() on.
  /// What follows goes on behind the largest component, as libmtmd does it. REQUIRES: M-RoPE.
  std::vector<float> decode_embeddings_at(std::span<const float> rows,
                                          std::span<const Position> positions, int n_block = 0);

  /// Continues greedily for n tokens after the last decode; stops at no token.
  std::vector<int32_t> greedy(int n);

  /// Forgets positions [pos0, pos1); with M-RoPE, all tokens whose t is one of them. A sequence
  /// goes on where it would have: llama.cpp wants that to be its last remaining position + 1
  /// (M-RoPE: or more), so an eviction must leave the last token.
  void remove(int32_t pos0, int32_t pos1);
  void clear();
  int32_t next_pos() const { return next_pos_; }

  /// Captures of the last decode call, all its blocks in order.
  TensorTap& tap() { return *tap_; }

 private:
  struct ModelDeleter {
    void operator()(llama_model* model) const { llama_model_free(model); }
  };
  struct ContextDeleter {
    void operator()(llama_context* context) const { llama_free(context); }
  };
  bool has_mrope() const;
  // Cuts the items into blocks and runs them; `set_input` points the batch at those from `first`
  // on.
  template <typename SetInput>
  void run_blocks(std::span<const Position> positions, int n_block, SetInput set_input);
  std::vector<Position> consecutive_positions(size_t n) const;
  std::vector<float> decode_rows(std::span<const float> rows, std::span<const Position> positions,
                                 int n_block);

  LlamaOracleOptions options_;
  std::unique_ptr<TensorTap> tap_;  // outlives the context, which holds its address
  std::unique_ptr<llama_model, ModelDeleter> model_;
  std::unique_ptr<llama_context, ContextDeleter> context_;
  int32_t next_pos_ = 0;
  std::vector<float> last_logits_;
};

}  // namespace plateau::test

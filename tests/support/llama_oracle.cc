#include "support/llama_oracle.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "base/check.h"
#include "support/compare.h"
#include "support/log_capture.h"

namespace plateau::test {

LlamaOracle::LlamaOracle(const std::string& path, const LlamaOracleOptions& options)
    : options_(options), tap_(std::make_unique<TensorTap>()) {
  capture_llama_logs();
  llama_backend_init();
  llama_model_params model_params = llama_model_default_params();
  model_params.n_gpu_layers = 0;
  model_params.use_extra_bufts = options.repack;
  model_.reset(llama_model_load_from_file(path.c_str(), model_params));
  if (model_ == nullptr) {
    throw_error(ErrorCode::kCorrupt,
                "[llama_oracle] expected a model that llama.cpp loads, got {}: {}", path,
                captured_llama_log());
  }

  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(options.n_ctx);
  params.n_batch = static_cast<uint32_t>(options.n_batch);
  params.n_ubatch = params.n_batch;
  params.n_threads = options.n_threads;
  params.n_threads_batch = options.n_threads;
  params.type_k = options.type_k;
  params.type_v = options.type_v;
  params.flash_attn_type =
      options.flash_attn ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.cb_eval = TensorTap::callback;
  params.cb_eval_user_data = tap_.get();
  context_.reset(llama_init_from_model(model_.get(), params));
  if (context_ == nullptr) {
    throw_error(ErrorCode::kCorrupt, "[llama_oracle] expected a context for {}, got none: {}", path,
                captured_llama_log());
  }
}

std::vector<int32_t> LlamaOracle::tokenize(const std::string& text, bool add_special,
                                           bool parse_special) const {
  std::vector<int32_t> tokens(text.size() + 2);  // a token is at least a byte, plus bos and eos
  const int n =
      llama_tokenize(vocab(), text.data(), static_cast<int32_t>(text.size()), tokens.data(),
                     static_cast<int32_t>(tokens.size()), add_special, parse_special);
  PLATEAU_CHECK(n >= 0);
  tokens.resize(static_cast<size_t>(n));
  return tokens;
}

std::string LlamaOracle::detokenize(std::span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    std::string piece(256, '\0');
    const int n = llama_token_to_piece(vocab(), token, piece.data(),
                                       static_cast<int32_t>(piece.size()), /*lstrip=*/0,
                                       /*special=*/true);
    PLATEAU_CHECK(n >= 0);
    text.append(piece, 0, static_cast<size_t>(n));
  }
  return text;
}

template <typename SetInput>
void LlamaOracle::run_blocks(int n, std::span<const int32_t> positions, int n_block,
                             SetInput set_input) {
  if (n_block == 0) n_block = options_.n_batch;
  PLATEAU_CHECK(n > 0 && n_block > 0 && n_block <= options_.n_batch);
  PLATEAU_CHECK(static_cast<int>(positions.size()) == n);
  tap_->clear();
  for (int first = 0; first < n; first += n_block) {
    const int n_now = std::min(n_block, n - first);
    std::vector<llama_pos> pos(positions.begin() + first, positions.begin() + first + n_now);
    std::vector<int32_t> n_seq_id(pos.size(), 1);
    llama_seq_id sequence = 0;
    std::vector<llama_seq_id*> seq_id(pos.size(), &sequence);
    std::vector<int8_t> logits(pos.size(), 0);
    logits.back() = 1;
    llama_batch batch = {};
    batch.n_tokens = n_now;
    batch.pos = pos.data();
    batch.n_seq_id = n_seq_id.data();
    batch.seq_id = seq_id.data();
    batch.logits = logits.data();
    set_input(batch, first);
    const int status = llama_decode(context_.get(), batch);
    if (status != 0) {
      throw_error(
          ErrorCode::kResourceExhausted,
          "[llama_oracle] expected llama_decode to take {} tokens at position {}, got {}: {}",
          n_now, pos.front(), status, captured_llama_log());
    }
    next_pos_ = pos.back() + 1;
  }
  const float* last = llama_get_logits_ith(context_.get(), -1);
  last_logits_.assign(last, last + n_vocab());
}

std::vector<float> LlamaOracle::decode(std::span<const int32_t> tokens, int n_block) {
  std::vector<int32_t> input(tokens.begin(), tokens.end());
  std::vector<int32_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), next_pos_);
  run_blocks(static_cast<int>(input.size()), positions, n_block,
             [&](llama_batch& batch, int first) { batch.token = input.data() + first; });
  return last_logits_;
}

std::vector<float> LlamaOracle::decode_embeddings(std::span<const float> rows,
                                                  std::span<const int32_t> positions, int n_block) {
  const size_t width = static_cast<size_t>(n_embd());
  PLATEAU_CHECK(rows.size() % width == 0);
  std::vector<float> input(rows.begin(), rows.end());
  std::vector<int32_t> consecutive(rows.size() / width);
  std::iota(consecutive.begin(), consecutive.end(), next_pos_);
  run_blocks(static_cast<int>(consecutive.size()), positions.empty() ? consecutive : positions,
             n_block, [&](llama_batch& batch, int first) {
               batch.embd = input.data() + static_cast<size_t>(first) * width;
             });
  return last_logits_;
}

std::vector<int32_t> LlamaOracle::greedy(int n) {
  PLATEAU_CHECK(!last_logits_.empty());
  std::vector<int32_t> tokens;
  while (static_cast<int>(tokens.size()) < n) {
    tokens.push_back(static_cast<int32_t>(argmax(last_logits_)));
    decode(std::span(tokens).last(1));
  }
  return tokens;
}

void LlamaOracle::remove(int32_t pos0, int32_t pos1) {
  PLATEAU_CHECK(llama_memory_seq_rm(llama_get_memory(context_.get()), /*seq_id=*/0, pos0, pos1));
  next_pos_ = llama_memory_seq_pos_max(llama_get_memory(context_.get()), /*seq_id=*/0) + 1;
}

void LlamaOracle::clear() {
  llama_memory_clear(llama_get_memory(context_.get()), /*data=*/true);
  next_pos_ = 0;
  last_logits_.clear();
  tap_->clear();
}

}  // namespace plateau::test

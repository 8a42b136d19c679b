#include "support/llama_oracle.h"

#include <algorithm>
#include <cstddef>

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

bool LlamaOracle::has_mrope() const {
  return llama_model_rope_type(model_.get()) == LLAMA_ROPE_TYPE_MROPE;
}

std::vector<LlamaOracle::Position> LlamaOracle::consecutive_positions(size_t n) const {
  std::vector<Position> positions;
  for (size_t i = 0; i < n; ++i) {
    const int32_t p = next_pos_ + static_cast<int32_t>(i);
    positions.push_back({p, p, p});
  }
  return positions;
}

template <typename SetInput>
void LlamaOracle::run_blocks(std::span<const Position> positions, int n_block, SetInput set_input) {
  const int n = static_cast<int>(positions.size());
  if (n_block == 0) n_block = options_.n_batch;
  PLATEAU_CHECK(n > 0 && n_block > 0 && n_block <= options_.n_batch);
  tap_->clear();
  for (int first = 0; first < n; first += n_block) {
    const int n_now = std::min(n_block, n - first);
    // All t, then all h, all w and all of a fourth that is unused; without M-RoPE, the t alone.
    std::vector<llama_pos> pos(4 * static_cast<size_t>(n_now), 0);
    for (size_t i = 0; i < static_cast<size_t>(n_now); ++i) {
      const Position& p = positions[static_cast<size_t>(first) + i];
      pos[i] = p.t;
      pos[static_cast<size_t>(n_now) + i] = p.h;
      pos[2 * static_cast<size_t>(n_now) + i] = p.w;
      next_pos_ = std::max({next_pos_, p.t + 1, p.h + 1, p.w + 1});
    }
    std::vector<int32_t> n_seq_id(static_cast<size_t>(n_now), 1);
    llama_seq_id sequence = 0;
    std::vector<llama_seq_id*> seq_id(n_seq_id.size(), &sequence);
    std::vector<int8_t> logits(n_seq_id.size(), 0);
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
  }
  const float* last = llama_get_logits_ith(context_.get(), -1);
  last_logits_.assign(last, last + n_vocab());
}

std::vector<float> LlamaOracle::decode(std::span<const int32_t> tokens, int n_block) {
  std::vector<int32_t> input(tokens.begin(), tokens.end());
  run_blocks(consecutive_positions(input.size()), n_block,
             [&](llama_batch& batch, int first) { batch.token = input.data() + first; });
  return last_logits_;
}

std::vector<float> LlamaOracle::decode_rows(std::span<const float> rows,
                                            std::span<const Position> positions, int n_block) {
  const size_t width = static_cast<size_t>(n_embd());
  PLATEAU_CHECK(rows.size() == positions.size() * width);
  std::vector<float> input(rows.begin(), rows.end());
  run_blocks(positions, n_block, [&](llama_batch& batch, int first) {
    batch.embd = input.data() + static_cast<size_t>(first) * width;
  });
  return last_logits_;
}

std::vector<float> LlamaOracle::decode_embeddings(std::span<const float> rows, int n_block) {
  return decode_rows(rows, consecutive_positions(rows.size() / static_cast<size_t>(n_embd())),
                     n_block);
}

std::vector<float> LlamaOracle::decode_embeddings_at(std::span<const float> rows,
                                                     std::span<const Position> positions,
                                                     int n_block) {
  PLATEAU_CHECK(has_mrope());
  return decode_rows(rows, positions, n_block);
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
  const int32_t last = llama_memory_seq_pos_max(llama_get_memory(context_.get()), /*seq_id=*/0);
  next_pos_ = has_mrope() ? std::max(next_pos_, last + 1) : last + 1;
}

void LlamaOracle::clear() {
  llama_memory_clear(llama_get_memory(context_.get()), /*data=*/true);
  next_pos_ = 0;
  last_logits_.clear();
  tap_->clear();
}

}  // namespace plateau::test

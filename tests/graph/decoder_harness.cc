#include "decoder_harness.h"

#include <algorithm>

#include "support/compare.h"

namespace plateau::test {

Decoder::Decoder(const std::string& path, const DecoderOptions& options)
    : model_(model::LanguageModel::load(path, {})),
      backends_(model::Device::cpu(), /*n_threads=*/1),
      cache_(model_, options.n_slot, options.type_k, options.type_v),
      tap_(std::make_unique<TensorTap>()),
      runner_(model_, backends_, cache_) {
  runner_.set_tap([tap = tap_.get()](ggml_tensor* tensor) {
    if (TensorTap::callback(tensor, /*ask=*/true, tap)) {
      TensorTap::callback(tensor, /*ask=*/false, tap);
    }
  });
}

std::vector<float> Decoder::decode(std::span<const int32_t> tokens, int n_block) {
  return decode_embeddings(runner_.embed(tokens), {}, n_block);
}

std::vector<float> Decoder::decode_embeddings(std::span<const float> rows,
                                              std::span<const kv::Position> positions, int n_block,
                                              bool want_logits) {
  const auto width = static_cast<size_t>(model_.config().n_embd);
  std::vector<kv::Position> consecutive;
  for (size_t i = 0; i < rows.size() / width; ++i) {
    consecutive.push_back(kv::Position::sequential(next_pos_ + static_cast<int32_t>(i)));
  }
  if (positions.empty()) positions = consecutive;
  const size_t n = positions.size();
  const size_t step = n_block == 0 ? n : static_cast<size_t>(n_block);
  std::vector<float> logits;
  for (size_t first = 0; first < n; first += step) {
    const size_t n_now = std::min(step, n - first);
    graph::Block block;
    block.embeddings = rows.subspan(first * width, n_now * width);
    block.positions = positions.subspan(first, n_now);
    block.n_cached = n_past_;
    block.want_logits = want_logits && first + n_now == n;
    logits = runner_.run(block).logits;
    n_past_ += static_cast<int>(n_now);
    for (const kv::Position& p : positions.subspan(first, n_now)) {
      next_pos_ = std::max({next_pos_, p.t + 1, p.h + 1, p.w + 1});
    }
  }
  return logits;
}

std::vector<int32_t> Decoder::greedy(std::vector<float> logits, int n) {
  std::vector<int32_t> tokens;
  while (static_cast<int>(tokens.size()) < n) {
    tokens.push_back(static_cast<int32_t>(argmax(logits)));
    logits = decode(std::span(tokens).last(1));
  }
  return tokens;
}

std::vector<uint8_t> Decoder::cache_content() const {
  std::vector<uint8_t> content;
  for (int il = 0; il < cache_.n_layer(); ++il) {
    for (const ggml_tensor* arena : {cache_.k(il), cache_.v(il)}) {
      for (int64_t head = 0; head < arena->ne[2]; ++head) {
        const size_t n_bytes = arena->nb[1] * static_cast<size_t>(n_past_);
        content.resize(content.size() + n_bytes);
        ggml_backend_tensor_get(arena, content.data() + content.size() - n_bytes,
                                static_cast<size_t>(head) * arena->nb[2], n_bytes);
      }
    }
  }
  return content;
}

}  // namespace plateau::test

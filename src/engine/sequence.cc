#include "engine/sequence.h"

#include <algorithm>

#include "base/check.h"

namespace plateau::engine {
namespace {

/// Where text would go on after these rows: the largest component + 1.
int32_t next_position(const std::vector<kv::Position>& positions) {
  int32_t last = -1;
  for (const kv::Position& p : positions) last = std::max({last, p.t, p.h, p.w});
  return last + 1;
}

}  // namespace

void SequenceTokens::generate(int64_t n_before, const kv::Position& position, int n_recent) {
  const int64_t n_prompt = prompt_.size();
  PLATEAU_CHECK(n_before >= n_prompt && n_recent >= 0);
  const auto index = static_cast<int32_t>(n_before - n_prompt);
  if (index == 0) first_position_ = position.t;
  PLATEAU_CHECK(position == kv::Position::sequential(first_position_ + index));
  size_ = n_before + 1;  // without a token whose row was cancelled
  first_protected_ = std::max(n_prompt, size_ - n_recent);
}

kv::TokenInfo SequenceTokens::at(int64_t token) const {
  const int64_t n_prompt = prompt_.size();
  if (token < n_prompt) return prompt_.at(token);
  kv::TokenInfo info;
  info.position =
      kv::Position::sequential(first_position_ + static_cast<int32_t>(token - n_prompt));
  info.is_protected = token >= first_protected_;
  return info;
}

Sequence::Sequence(const model::LanguageModel& model, const model::Backends& backends,
                   const SequenceOptions& options, const kv::TokenTable& prompt)
    : model_(model),
      options_(options),
      cache_(model, options.n_arena, options.cache_type_k, options.cache_type_v,
             model::WeightUse::kCompute, backends.cancel_poll()),
      runner_(model, backends, cache_),
      slots_(model.config().n_layer, model.config().n_head_kv, cache_.n_slot()),
      tokens_(prompt) {}

void Sequence::set_proxies(Rows proxies) { proxies_ = std::move(proxies); }

std::vector<float> Sequence::append(const Rows& rows, int n_keep, bool want_logits,
                                    bool rows_are_proxies) {
  const bool evicts = n_keep < slots_.n_held() + rows.n();
  PLATEAU_CHECK(!evicts || options_.policy != nullptr);
  PLATEAU_CHECK(slots_.n_total() + rows.n() <= tokens_.size());
  const bool observes = evicts && options_.policy->observes();
  const bool add_proxies =
      observes && options_.policy->needs_question() && !rows_are_proxies && proxies_.n() > 0;

  graph::Block block = {.embeddings = rows.embeddings,
                        .positions = rows.positions,
                        .n_cached = slots_.n_held(),
                        .want_logits = want_logits};
  Rows with_proxies;
  if (evicts) {
    block.policy = options_.policy;
    // Only the question may observe for a policy that asks for it, not what precedes it in the
    // block.
    const bool has_question = options_.policy->needs_question() && proxies_.n() > 0;
    block.n_observed =
        std::min(has_question ? proxies_.n() : options_.policy_options.window, rows.n());
  }
  if (add_proxies) {
    with_proxies = rows;
    std::vector<kv::Position> positions = proxies_.positions;
    if (options_.policy_options.proxy_position == ProxyPosition::kAfterBlock) {
      const int32_t next = next_position(rows.positions);
      for (size_t i = 0; i < positions.size(); ++i) {
        positions[i] = kv::Position::sequential(next + static_cast<int32_t>(i));
      }
    }
    with_proxies.append(proxies_.embeddings, positions);
    block.embeddings = with_proxies.embeddings;
    block.positions = with_proxies.positions;
    block.n_proxy = block.n_observed = proxies_.n();
  }
  graph::BlockResult result = runner_.run(block);
  slots_.append(rows.n());
  if (evicts) {
    kv::evict(*options_.policy, result.signals, model_.config().n_head, tokens_, n_keep, slots_,
              cache_, times_);
  }
  return std::move(result.logits);
}

std::vector<float> Sequence::peek(const Rows& row, int n_ahead) {
  PLATEAU_CHECK(row.n() == 1 && n_ahead >= 0 && slots_.n_held() + n_ahead < cache_.n_slot());
  return runner_
      .run({.embeddings = row.embeddings,
            .positions = row.positions,
            .n_cached = slots_.n_held() + n_ahead,
            .want_logits = true})
      .logits;
}

std::vector<float> Sequence::append_generated(const Rows& row, int n_keep, int n_recent) {
  PLATEAU_CHECK(row.n() == 1);
  tokens_.generate(slots_.n_total(), row.positions[0], n_recent);
  std::vector<float> logits = append(row, n_keep, /*want_logits=*/true, /*rows_are_proxies=*/false);
  proxies_.append(row.embeddings, row.positions);
  proxies_.keep_last(options_.policy_options.window);
  return logits;
}

}  // namespace plateau::engine

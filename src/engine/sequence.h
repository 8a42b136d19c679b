// One sequence in a budgeted cache: runs a block, and evicts right after it where the budget asks
// for it (arXiv:2604.16734). Prefill and decoding are both made of these steps.
//
//   1. The block's rows attend to the cache and, causally, to themselves; K and V are appended.
//   2. Where the step evicts, the policy's signals come out of the same graph. A question-aware
//      policy adds proxy queries: the latest text rows, run again as extra rows that are not kept.
//   3. The highest scores stay, per layer and kv head.
//
// Tested by tests/kv/policy_properties_test.cc and tests/kv/eviction_oracle_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/rows.h"
#include "graph/block_runner.h"
#include "kv/budget.h"
#include "kv/evictor.h"
#include "kv/policy.h"
#include "kv/slot_map.h"
#include "kv/token_info.h"

namespace plateau::engine {

/// A prompt's tokens, and after them the generated ones.
class SequenceTokens final : public kv::TokenTable {
 public:
  /// `prompt` must outlive the table.
  explicit SequenceTokens(const kv::TokenTable& prompt) : prompt_(prompt), size_(prompt.size()) {}

  /// The token after `n_before` of the sequence was generated and stands at a position; the latest
  /// `n_recent` generated ones are protected. Tokens generated one after another stand one after
  /// another.
  void generate(int64_t n_before, const kv::Position& position, int n_recent);

  int64_t size() const override { return size_; }
  kv::TokenInfo at(int64_t token) const override;

 private:
  const kv::TokenTable& prompt_;
  int64_t size_;
  int64_t first_protected_ = 0;  // of the generated
  int32_t first_position_ = 0;   // likewise
};

struct SequenceOptions {
  int n_arena = 0;  // slots per layer and kv head
  CacheType cache_type_k = CacheType::kF16;
  CacheType cache_type_v = CacheType::kF16;
  kv::Policy* policy = nullptr;  // null: nothing is ever evicted
  PolicyOptions policy_options = {};
};

class Sequence {
 public:
  /// model, backends, policy and the table of the prompt's tokens must outlive the sequence.
  /// Errors: those of KvCache.
  Sequence(const model::LanguageModel& model, const model::Backends& backends,
           const SequenceOptions& options, const kv::TokenTable& prompt);

  graph::BlockRunner& runner() { return runner_; }
  const kv::KvCache& cache() const { return cache_; }
  const kv::SlotMap& slots() const { return slots_; }
  const kv::TokenTable& tokens() const { return tokens_; }
  const kv::EvictionTimes& eviction_times() const { return times_; }
  int n_held() const { return slots_.n_held(); }

  /// Rows that stand for the question: the prompt's last text rows. Generated tokens join them.
  void set_proxies(Rows proxies);
  int n_proxy() const { return proxies_.n(); }

  /// Runs the rows and keeps `n_keep` tokens per layer and head (n_held() + rows: all of them).
  /// `rows_are_proxies`: the rows end with the proxies themselves, so that they observe.
  /// Returns the last row's logits [n_vocab], empty unless wanted.
  std::vector<float> append(const Rows& rows, int n_keep, bool want_logits, bool rows_are_proxies);

  /// The logits [n_vocab] after one more row that is not kept: its K and V lie behind the held
  /// ones, where the next row overwrites them. It sees the `n_ahead` rows that were peeked just
  /// before it. REQUIRES: room for n_ahead + 1 rows.
  std::vector<float> peek(const Rows& row, int n_ahead);

  /// Appends one generated token; it is protected while it is among the last `n_recent`.
  std::vector<float> append_generated(const Rows& row, int n_keep, int n_recent);

 private:
  const model::LanguageModel& model_;
  SequenceOptions options_;
  kv::KvCache cache_;
  graph::BlockRunner runner_;
  kv::SlotMap slots_;
  SequenceTokens tokens_;
  Rows proxies_;
  kv::EvictionTimes times_;
};

}  // namespace plateau::engine

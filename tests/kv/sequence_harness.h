// A budgeted sequence on a tiny random model, driven as engine::prefill and engine::decode drive
// it, with rows of noise where a picture's embeddings would be.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/block_planner.h"
#include "engine/prompt_plan.h"
#include "engine/protection.h"
#include "engine/rows.h"
#include "engine/sequence.h"
#include "kv/budget.h"
#include "kv/policy.h"
#include "model/backend.h"
#include "model/language_model.h"
#include "support/synth.h"

namespace plateau::test {

/// Passes everything on to another policy and remembers what it answered.
class RecordingPolicy final : public kv::Policy {
 public:
  /// One layer at one eviction.
  struct Record {
    int il = 0;
    int n_held = 0;
    std::vector<std::vector<int32_t>> tokens;  // per kv head, before the eviction
    std::vector<float> scores;                 // [n_held, n_head_kv]
  };

  /// `policy` must outlive this.
  explicit RecordingPolicy(const kv::Policy& policy) : policy_(policy) {}

  bool observes() const override { return policy_.observes(); }
  bool needs_question() const override { return policy_.needs_question(); }
  bool evicts_only_at_end() const override { return policy_.evicts_only_at_end(); }
  std::vector<ggml_tensor*> build_signals(const kv::SignalInputs& inputs) const override {
    return policy_.build_signals(inputs);
  }
  void score(const kv::LayerSlots& layer, std::span<const std::vector<float>> signals,
             std::span<float> scores) const override;

  mutable std::vector<Record> records;  // of the latest eviction

 private:
  const kv::Policy& policy_;
};

/// Scores that depend on (layer, head, token) alone, with many ties.
class GivenScorePolicy final : public kv::Policy {
 public:
  static float score_of(int il, int head, int32_t token);
  void score(const kv::LayerSlots& layer, std::span<const std::vector<float>> signals,
             std::span<float> scores) const override;
};

/// The tiny model and one prompt: text, a picture of tiles between its markers, a question.
class TinyWorld {
 public:
  explicit TinyWorld(const TinyTextModel& tiny, int n_tiles = 6);

  const model::LanguageModel& model() const { return model_; }
  model::Backends& backends() { return backends_; }
  const engine::PromptPlan& prompt() const { return prompt_; }
  const engine::Rows& rows() const { return rows_; }
  int n_prompt() const { return static_cast<int>(prompt_.n_tokens()); }
  engine::Rows slice(int begin, int end) const;

 private:
  model::LanguageModel model_;
  model::Backends backends_;
  engine::PromptPlan prompt_;
  engine::Rows rows_;  // of the whole prompt
};

struct RunOptions {
  int budget = 0;
  int n_block = 64;
  int n_bulk = 0;
  bool strict = false;
  int n_decode = 1;
  CacheType cache_type = CacheType::kF16;
  PolicyOptions policy_options = {.window = 8};
};

/// One prompt on its way through a budgeted sequence.
class PromptRun {
 public:
  /// `policy` null: everything is kept. Errors: those of plan_budget.
  PromptRun(TinyWorld& world, kv::Policy* policy, const RunOptions& options);

  const std::vector<engine::BlockPlan>& blocks() const { return blocks_; }
  const kv::BudgetPlan& plan() const { return plan_; }
  const engine::Protection& protection() const { return protection_; }
  /// The prompt's tokens, with what is protected.
  const kv::TokenTable& tokens() const { return *tokens_; }
  engine::Sequence& sequence() { return *sequence_; }
  const kv::SlotMap& slots() const { return sequence_->slots(); }
  int n_done() const { return n_done_; }
  bool is_done() const { return next_block_ == blocks_.size(); }
  const kv::BlockStep& next_step() const { return plan_.steps[next_block_]; }
  /// Rows of the next step that are run but not kept.
  int n_proxy_of_next() const;

  /// Runs the next block. What it throws leaves the run as it was.
  void step();
  /// All blocks that are left; the logits after the last prompt token.
  const std::vector<float>& finish();
  /// Appends one generated token, evicting as engine::decode does.
  const std::vector<float>& generate(model::Token token, int n_recent);

  /// The tokens of every (layer, head), one after another.
  std::vector<std::vector<int32_t>> kept() const;
  /// The stored rows of K or V in f32, [head_dim, n_held] of one head.
  std::vector<float> stored(const ggml_tensor* arena, int head) const;
  std::vector<float> stored_k(int il, int head) const {
    return stored(sequence_->cache().k(il), head);
  }
  std::vector<float> stored_v(int il, int head) const {
    return stored(sequence_->cache().v(il), head);
  }
  /// No row at or beyond the planned arena was ever written (the cache starts as zeros).
  bool is_untouched_beyond_arena() const;

 private:
  TinyWorld& world_;
  kv::Policy* policy_;
  std::vector<engine::BlockPlan> blocks_;
  engine::Protection protection_;
  kv::BudgetPlan plan_;
  std::unique_ptr<engine::PromptTokens> tokens_;
  std::unique_ptr<engine::Sequence> sequence_;
  size_t next_block_ = 0;
  int n_done_ = 0;
  int n_generated_ = 0;
  std::vector<float> logits_;
};

/// Sorts everything: the slots that stay by definition, ascending. Equal scores: the older stays.
std::vector<int32_t> kept_by_sorting(std::span<const float> scores,
                                     std::span<const uint8_t> is_protected, int n_keep);

}  // namespace plateau::test

// Block-wise prefill under a fixed budget (arXiv:2604.16734, the paper's algorithm):
//
//   for each block of the prompt:
//     encode its visual units, assemble its rows,
//     run it against the cache,
//     and evict what exceeds the budget before the next one.
//
// Tested by tests/engine/prefill_test.cc.
#pragma once

#include <functional>
#include <vector>

#include "engine/block_planner.h"
#include "engine/prompt_plan.h"
#include "engine/sequence.h"
#include "engine/visual_source.h"
#include "kv/budget.h"

namespace plateau::engine {

struct PrefillResult {
  std::vector<float> logits;  // [n_vocab] after the last prompt token
  double prefill_ms = 0;      // in the decoder and the cache, without encoding
};

/// The prompt's last rows that stand for the question: at most `n_window` of the text that follows
/// the last picture.
Rows question_rows(const PromptPlan& prompt, const graph::BlockRunner& runner, int n_window);

/// `visuals` may be null when the prompt has no visual piece. `on_block` is called after each block
/// with its index and the number of prompt tokens done, and may throw to stop.
PrefillResult prefill(const PromptPlan& prompt, const std::vector<BlockPlan>& blocks,
                      const kv::BudgetPlan& budget, Sequence& sequence, UnitSource* visuals,
                      const std::function<void(int, int64_t)>& on_block);

}  // namespace plateau::engine

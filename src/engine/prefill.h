// The block loop of block-wise prefill: assemble a block's rows, run it, go on.
// Tested by tests/engine/prefill_test.cc.
#pragma once

#include <functional>
#include <vector>

#include "engine/block_planner.h"
#include "engine/prompt_plan.h"
#include "engine/visual_source.h"
#include "graph/block_runner.h"

namespace plateau::engine {

struct PrefillResult {
  std::vector<float> logits;  // [n_vocab] after the last prompt token
  int n_past = 0;             // slots filled
  double prefill_ms = 0;      // in the decoder only
};

/// `visuals` may be null when the prompt has no visual piece. `on_block` is called after each block
/// with the number of prompt tokens done, and may throw to stop.
PrefillResult prefill(const PromptPlan& prompt, const std::vector<BlockPlan>& blocks,
                      graph::BlockRunner& runner, VisualSource* visuals,
                      const std::function<void(int64_t)>& on_block);

}  // namespace plateau::engine

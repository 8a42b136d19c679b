// Which tokens of a prompt are never evicted. Pure.
// Tested by tests/engine/protection_test.cc.
#pragma once

#include <vector>

#include "engine/prompt_plan.h"
#include "kv/token_info.h"

namespace plateau::engine {

/// The first tokens of a sequence hold attention that has nowhere else to go (StreamingLLM,
/// arXiv:2309.17453).
inline constexpr int kSinks = 4;

struct Protection {
  std::vector<kv::TokenInfo> info;  // by token
  int n_protected = 0;
  int64_t n_evictable_text = 0;  // text beyond the limit
};

/// Always kept: the first kSinks tokens, markers of pictures and films, and text, but not the
/// labels of a film's pictures, of which there may be as many as there are frames. Text longer than
/// half the budget (but at least `n_window` tokens of it) keeps its latest tokens only; the rest
/// competes by score. `budget` 0: nothing is evicted, nothing needs protection.
/// `info` has room for `n_generated` more tokens: growing later would hold it twice.
Protection protect(const PromptPlan& prompt, int budget, int n_window, int n_generated = 0);

/// The smallest budget that holds everything it protects (which grows with it).
int smallest_budget(const PromptPlan& prompt, int n_window);

}  // namespace plateau::engine

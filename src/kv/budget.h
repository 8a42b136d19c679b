// Budget arithmetic: how many slots the arena needs, and how many tokens stay after each block.
// Pure.
//
//   n_kept <= n_past <= n_total,  n_kept <= budget
//
// n_total: tokens of the sequence so far; n_past: slots filled while a block runs; n_kept: slots
// filled after its eviction.
// Tested by tests/kv/budget_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plateau::kv {

/// One block of a prefill as the cache sees it.
struct BlockStep {
  int n_rows = 0;    // tokens of the block
  int n_before = 0;  // slots filled when it starts
  int n_after = 0;   // slots filled after its eviction
  bool evicts() const { return n_after < n_before + n_rows; }
};

struct BudgetPlan {
  std::vector<BlockStep> steps;
  int n_arena = 0;  // slots needed: the fullest moment, proxy rows and decoding room included
  // While decoding: when n_decode_limit slots are filled, evict down to n_decode_keep.
  int n_decode_limit = 0;
  int n_decode_keep = 0;
};

struct BudgetRequest {
  std::span<const int> block_rows;  // tokens of each block, in order
  int budget = 0;                   // M; 0: keep everything
  bool strict = false;              // leave room for the next block within the budget
  bool evict_only_at_end = false;   // the whole prompt first, then one eviction
  int n_proxy = 0;                  // rows that run with each evicting block and are overwritten
  int n_decode = 0;                 // tokens to be generated at most
  int n_protected = 0;              // tokens that are never evicted
};

/// Append mode: arena = budget + block (+ proxies); strict mode: arena = budget (+ proxies), a
/// block starts with at most budget - block tokens. Errors: kInvalidArgument when the protected
/// tokens (and in strict mode a block) do not fit the budget; the message says how large it must
/// be.
BudgetPlan plan_budget(const BudgetRequest& request);

}  // namespace plateau::kv

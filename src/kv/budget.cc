#include "kv/budget.h"

#include <algorithm>

#include "base/check.h"

namespace plateau::kv {
namespace {

void require_room(const BudgetRequest& request, int n_next_block_max) {
  if (request.strict && request.budget < request.n_protected + n_next_block_max) {
    throw_error(
        ErrorCode::kInvalidArgument,
        "[--kv-budget] expected at least {} tokens in strict mode ({} always kept, {} for a "
        "block), got {}; try a smaller --block",
        request.n_protected + n_next_block_max, request.n_protected, n_next_block_max,
        request.budget);
  }
  if (request.budget < request.n_protected) {
    throw_error(ErrorCode::kInvalidArgument,
                "[--kv-budget] expected at least {} tokens, those that are always kept (the first "
                "ones, picture markers, instruction and question), got {}",
                request.n_protected, request.budget);
  }
}

BudgetPlan keep_everything(const BudgetRequest& request) {
  BudgetPlan plan;
  int n_past = 0;
  for (const int n_rows : request.block_rows) {
    plan.steps.push_back({n_rows, n_past, n_past + n_rows});
    n_past += n_rows;
  }
  plan.n_arena = n_past + request.n_decode;
  plan.n_decode_limit = plan.n_arena + 1;  // never reached
  plan.n_decode_keep = plan.n_arena;
  return plan;
}

}  // namespace

BudgetPlan plan_budget(const BudgetRequest& request) {
  PLATEAU_CHECK(request.budget >= 0 && !request.block_rows.empty());
  // A policy that holds the whole prompt cannot make room for the next block.
  const bool leaves_room = request.strict && !request.evict_only_at_end;
  int n_prompt = 0;
  int n_next_block_max = 1;  // the largest that must find room beside what is kept
  for (size_t i = 0; i < request.block_rows.size(); ++i) {
    const int n_rows = request.block_rows[i];
    PLATEAU_CHECK(n_rows >= 1);
    // Before the first block nothing can be evicted: in strict mode it must fit by itself.
    if ((i > 0 || leaves_room) && n_prompt + n_rows > request.budget) {
      n_next_block_max = std::max(n_next_block_max, n_rows);
    }
    n_prompt += n_rows;
  }
  const int budget = request.budget;
  if (budget == 0 || n_prompt + request.n_decode <= budget) return keep_everything(request);
  require_room(request, leaves_room ? n_next_block_max : 1);

  BudgetPlan plan;
  const int room = request.strict
                       ? std::max(1, std::min(n_next_block_max, (budget - request.n_protected) / 4))
                       : std::max(n_next_block_max, request.block_rows.front() - budget);
  plan.n_decode_limit = request.strict ? budget : budget + room;
  plan.n_decode_keep = plan.n_decode_limit - room;
  plan.n_arena = plan.n_decode_limit + request.n_proxy;

  int n_past = 0;
  for (size_t i = 0; i < request.block_rows.size(); ++i) {
    const int n_rows = request.block_rows[i];
    const bool is_last = i + 1 == request.block_rows.size();
    int n_after = n_past + n_rows;
    if (is_last || !request.evict_only_at_end) n_after = std::min(n_after, budget);
    if (leaves_room || (request.strict && is_last)) {
      n_after = std::min(n_after, budget - (is_last ? 1 : request.block_rows[i + 1]));
    }
    const BlockStep step = {n_rows, n_past, n_after};
    plan.n_arena = std::max(plan.n_arena, n_past + n_rows + (step.evicts() ? request.n_proxy : 0));
    plan.steps.push_back(step);
    n_past = n_after;
  }
  return plan;
}

}  // namespace plateau::kv

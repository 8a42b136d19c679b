// Everything about a request that is known before any work: pictures, prompt, blocks, budget.
// Tested by tests/engine/engine_test.cc.
#pragma once

#include <memory>
#include <vector>

#include "engine/block_planner.h"
#include "engine/loaded_model.h"
#include "engine/prompt_plan.h"
#include "engine/protection.h"
#include "engine/visual_source.h"
#include "kv/budget.h"
#include "kv/policy.h"
#include "plateau/request.h"

namespace plateau::engine {

struct RequestPlan {
  std::vector<PlannedImage> images;  // pictures and films
  PromptPlan prompt;
  std::unique_ptr<kv::Policy> policy;  // null: everything is kept
  std::vector<BlockPlan> blocks;
  Protection protection;
  kv::BudgetPlan budget;
  int n_recent = 0;  // latest generated tokens that are never evicted
  std::vector<std::vector<model::Token>> continuations;  // of Request::continuations
};

/// Errors: kInvalidArgument naming the option. What depends on the model, the prompt, pictures and
/// films is left to plan_request().
void check_request_options(const Request& request);

/// Reads picture headers, but no pixels; of a film, one frame.
/// Errors: kInvalidArgument (an option, a budget that is too small), those of media::probe_image
/// and build_prompt, kResourceExhausted (more tokens than can be numbered).
RequestPlan plan_request(const Request& request, const LoadedModel& loaded);

/// The same for a prompt that is laid out already; the request's messages and image options are not
/// used. REQUIRES: the prompt has a token.
RequestPlan plan_prompt(const Request& request, PromptPlan prompt);

}  // namespace plateau::engine

// How much memory a planned request needs, part by part. Graphs are built and measured, not run, so
// a model that was opened for planning will do.
// Tested by tests/cli/plan_test.cc and memory_fuzz_test.cc.
#pragma once

#include <vector>

#include "engine/loaded_model.h"
#include "engine/request_plan.h"
#include "plateau/plan.h"

namespace plateau::engine {

/// An upper bound on what the request allocates; "runtime" holds what the process has already.
std::vector<MemoryPart> plan_memory(const Request& request, const RequestPlan& plan,
                                    LoadedModel& loaded);

}  // namespace plateau::engine

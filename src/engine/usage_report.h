// Fills the figures that an answer is returned with.
#pragma once

#include "engine/loaded_model.h"
#include "engine/request_plan.h"
#include "engine/sequence.h"
#include "plateau/request.h"

namespace plateau::engine {

/// What is known before the first block.
Usage planned_usage(const Request& request, const RequestPlan& plan, const LoadedModel& loaded);

/// What the cache holds of each picture now.
void report_kept(const RequestPlan& plan, const Sequence& sequence, bool want_kept_share,
                 Usage& usage);

/// What the cache holds of each region now: Usage::regions. REQUIRES: regions that meet their
/// pictures.
void report_regions(const RequestPlan& plan, const Sequence& sequence,
                    const std::vector<ImageRegion>& regions, Usage& usage);

/// The kept tokens after a block, which holds the prompt's tokens [n_before, tokens_done).
BlockTrace trace_of(const Sequence& sequence, int block, int64_t n_before, int64_t tokens_done);

}  // namespace plateau::engine

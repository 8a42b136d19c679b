// What an evaluation has still to ask. Pure. Tested by tests/eval/pending_test.cc.
#pragma once

#include <cstddef>
#include <vector>

#include "eval/dataset.h"
#include "eval/run_record.h"
#include "eval/run_settings.h"

namespace plateau::eval {

struct PendingQuestion {
  size_t question = 0;
  std::vector<Setting> settings;  // those without an answer
};

/// Questions about the same pictures that follow each other, so that these are encoded once.
using PendingGroup = std::vector<PendingQuestion>;

/// All pairs of a question and a setting that `done` has no answer to, in order. What failed is
/// asked again: the picture may be there now.
std::vector<PendingGroup> pending_groups(const std::vector<SetQuestion>& questions,
                                         const std::vector<Setting>& settings,
                                         const std::vector<ResultRecord>& done);

/// Answers that the groups ask for.
size_t count_pairs(const std::vector<PendingGroup>& groups);

}  // namespace plateau::eval

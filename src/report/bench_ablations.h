// Figures of `plateau bench` that compare one choice: block sizes, the bulk stage. Tested by
// tests/report/figures_test.cc.
#pragma once

#include <vector>

#include "report/bench_subject.h"

namespace plateau::report {

/// Curves over the block size, for prompts measured with at least two.
Section block_section(const std::vector<Subject>& subjects);

/// Pairs that differ in the bulk stage alone.
Section bulk_section(const std::vector<Subject>& subjects);

}  // namespace plateau::report

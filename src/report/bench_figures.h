// The figures of `plateau bench` records. Tested by tests/report/figures_test.cc.
#pragma once

#include <vector>

#include "report/figure.h"
#include "report/records.h"

namespace plateau::report {

/// Sections without data are left out. Of several measurements of one point, the last counts.
std::vector<Section> bench_sections(const Records& records);

std::vector<KeyFigure> bench_key_figures(const Records& records);

}  // namespace plateau::report

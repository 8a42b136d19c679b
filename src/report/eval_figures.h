// The figures of `plateau eval` records. Tested by tests/report/figures_test.cc.
#pragma once

#include <optional>
#include <vector>

#include "report/figure.h"
#include "report/records.h"

namespace plateau::report {

/// Sections without data are left out.
std::vector<Section> eval_sections(const Records& records);

std::vector<KeyFigure> eval_key_figures(const Records& records);

/// Pearson's r; nothing with fewer than 3 values or where one side does not vary.
/// REQUIRES: as many x as y.
std::optional<double> correlation(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace plateau::report

// What the figures of `plateau bench` have in common: which records belong together, how a setting
// is called, the table under a plot.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "report/figure.h"
#include "report/records.h"

namespace plateau::report {

/// One model on one machine with one number of threads.
struct Subject {
  std::string title;
  std::vector<const BenchRecord*> records;  // one per point
};

/// Of several measurements of one point, the last counts. Records ascend by visual tokens, the full
/// cache first.
std::vector<Subject> subjects_of(const std::vector<BenchRecord>& records);

/// Records of the subject that pass.
Subject only(const Subject& subject, const std::function<bool(const BenchRecord&)>& passes);

/// "snapkv, 1024 tokens, block 512"; without_block() leaves out blocks and bulk.
std::string setting_name(const BenchRecord& record);
std::string without_block(const BenchRecord& record);

double to_mib(int64_t n_bytes);
std::string mib(int64_t n_bytes);
std::string seconds(const Spread& ms);

/// Titles after "visual tokens" and "setting", and what stands under them.
using Columns = std::vector<std::pair<std::string, std::function<std::string(const BenchRecord&)>>>;

Table table_of(const std::vector<const BenchRecord*>& records, const Columns& columns);

/// Leaves out a figure without series or rows.
void add_figure(Section& section, const Subject& subject, Plot plot, Table table);

}  // namespace plateau::report

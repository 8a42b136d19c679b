// Result files as one HTML page. Tested by tests/report/report_test.cc.
#pragma once

#include <string>
#include <vector>

namespace plateau::report {

struct ReportOptions {
  std::vector<std::string> files = {};     // JSON Lines of bench and eval
  std::vector<std::string> pictures = {};  // shown at the end
  std::string title = "Plateau report";
  std::string made = {};  // who made it and when
};

/// Errors: those of read_records and picture_uri; kInvalidArgument with nothing to show.
std::string make_report(const ReportOptions& options);

}  // namespace plateau::report

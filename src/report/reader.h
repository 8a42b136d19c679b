// Reads result files, JSON Lines of `plateau bench` and `plateau eval`.
// Tested by tests/report/reader_test.cc.
#pragma once

#include <string>
#include <vector>

#include "report/records.h"

namespace plateau::report {

/// Errors: kNotFound (a file), kCorrupt with file and line number (no JSON, a type that is not
/// known, a field that is missing or wrong), kCorrupt (a file without a result).
Records read_records(const std::vector<std::string>& paths);

}  // namespace plateau::report

// The records of a sweep as lines for people. Tested by tests/bench/record_test.cc.
#pragma once

#include <string>

namespace plateau::bench {

/// The heading; `against`: with the columns of a comparison.
std::string table_heading(bool against);

/// One line for a "bench" record (record.h).
std::string table_row(const std::string& line, bool against);

}  // namespace plateau::bench

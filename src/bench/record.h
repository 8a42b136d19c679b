// The JSON Lines of `plateau bench`; docs/bench.md lists the fields.
// Tested by tests/bench/record_test.cc.
#pragma once

#include <string>

#include "bench/bench_point.h"
#include "bench/fingerprint.h"
#include "bench/measure.h"

namespace plateau::bench {

/// {"type": "fingerprint", ...}: the first line of a run, without the line's end.
std::string fingerprint_line(const Fingerprint& fingerprint);

/// {"type": "bench", "run": ..., ...} of one measurement.
std::string measurement_line(const std::string& run, const BenchPoint& point,
                             const Measurement& measurement);

/// The same for a measurement that failed: the point's fields and "error".
std::string failure_line(const std::string& run, const BenchPoint& point,
                         const std::string& message);

}  // namespace plateau::bench

// One request from the plan to the answer, in this process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plateau/options.h"
#include "plateau/request.h"

namespace plateau {

struct MeasuredRun {
  Usage usage;
  std::vector<std::string> concessions;
  int64_t planned_bytes = 0;       // all of it
  int64_t planned_anon_bytes = 0;  // what is not mapped from the model's files
  int64_t peak_anon_bytes = 0;
  double wall_s = 0;
};

/// Plans the request within `spare_bytes` beyond the weights (0: no bound), and runs it as planned.
/// Errors: as plan() and Engine::run.
MeasuredRun measure_run(const EngineOptions& options, const Request& request,
                        int64_t spare_bytes = 0);

/// As fields of a JSON object.
std::string json_fields(const MeasuredRun& run);

}  // namespace plateau

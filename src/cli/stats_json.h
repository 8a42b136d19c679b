// The figures of one answer as JSON (docs/design.md lists the fields).
#pragma once

#include <cstdint>
#include <string>

#include "plateau/plan.h"

namespace plateau::cli {

struct ProcessStats {
  int64_t peak_rss_bytes = 0;
  int64_t peak_anon_bytes = 0;
};

std::string stats_json(const Plan& plan, const Answer& answer, const ProcessStats& process);
/// What `plateau plan --json` prints.
std::string plan_json(const Plan& plan);

}  // namespace plateau::cli

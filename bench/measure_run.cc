#include "measure_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/memory.h"
#include "base/stopwatch.h"
#include "plateau/engine.h"
#include "plateau/plan.h"

namespace plateau {
namespace {

int64_t mapped_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const MemoryPart& part : plan.memory) bytes += part.mapped ? part.bytes : 0;
  return bytes;
}

}  // namespace

MeasuredRun measure_run(const EngineOptions& options, const Request& request, int64_t spare_bytes) {
  Plan planned = plan(options, request);
  const int64_t weights = mapped_bytes(planned);
  if (spare_bytes > 0) planned = plan(options, request, weights + spare_bytes);
  MeasuredRun run;
  run.concessions = planned.concessions;
  run.planned_bytes = total_bytes(planned.memory);
  run.planned_anon_bytes = run.planned_bytes - weights;
  AnonWatch anon;
  const Stopwatch watch;
  run.usage = Engine::open(planned.engine).run(planned.request).usage;
  run.wall_s = watch.ms() / 1000;
  run.peak_anon_bytes = anon.peak_bytes();
  return run;
}

std::string json_fields(const MeasuredRun& run) {
  return fmt::format(
      "\"prompt_tokens\": {}, \"kv_bytes\": {}, \"peak_anon_bytes\": {}, "
      "\"planned_anon_bytes\": {}, \"planned_by_measured\": {:.3f}, \"wall_s\": {:.0f}",
      run.usage.prompt_tokens, run.usage.kv_bytes, run.peak_anon_bytes, run.planned_anon_bytes,
      static_cast<double>(run.planned_anon_bytes) / static_cast<double>(run.peak_anon_bytes),
      run.wall_s);
}

}  // namespace plateau

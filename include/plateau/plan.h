// What a request costs, and how it is made to fit a bound, before any weights are loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plateau/error.h"
#include "plateau/options.h"
#include "plateau/request.h"

namespace plateau {

/// Memory of one purpose on one device, in bytes at its fullest moment.
struct MemoryPart {
  std::string name;    // "weights", "projector", "kv", "compute", "encoder", "media", "host" or
                       // "runtime"
  std::string device;  // "CPU", or a name from `plateau info`
  int64_t bytes = 0;
  bool mapped = false;  // pages of a file, which the system can drop and read again
};

int64_t total_bytes(const std::vector<MemoryPart>& parts);

struct Plan {
  EngineOptions engine;  // as given, with the concessions applied
  Request request;       // likewise
  Usage usage;           // what is known before any work
  std::vector<MemoryPart> memory;
  /// What was changed so that the request fits, in words; empty when it fits as given.
  std::vector<std::string> concessions;
};

/// Reads metadata and media headers only. With a `memory_bound` (bytes; 0: none) concessions are
/// made until the total is at most the bound, in this order:
///  1. fewer tiles or patches are encoded at once (the answer stays the same);
///  2. smaller blocks, unless the request names a size (the same while everything is kept);
///  3. a KV budget, unless the request names one: the largest that fits;
///  4. Qwen2.5-VL's pictures are encoded in bands that do not see each other.
/// Errors: those of Engine::open and Engine::run that need no pixels and no weights;
/// kResourceExhausted when nothing helps, naming the largest part and two ways out.
Plan plan(const EngineOptions& options, const Request& request, int64_t memory_bound = 0);

/// Whether this machine has room now: host memory under the cgroup's limit, and each device's own.
/// Mapped weights need no room, they are read again from the file. Errors: kResourceExhausted,
/// naming the device, what is needed and what is free.
void require_room(const Plan& plan);

}  // namespace plateau

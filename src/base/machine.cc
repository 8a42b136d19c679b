#include "base/machine.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace plateau {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

int64_t mem_available() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  std::string unit;
  while (meminfo >> key >> kib) {
    if (key == "MemAvailable:") return kib * 1024;
    std::getline(meminfo, unit);
  }
  return kUnknown;
}

/// Nothing but a number is a limit ("max" is none).
int64_t number_in(const char* path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? value : kUnknown;
}

/// Cached file pages count as used, but can be dropped.
int64_t cached_file_bytes(const char* stat_path) {
  std::ifstream stat(stat_path);
  std::string key;
  int64_t value = 0;
  int64_t total = 0;
  while (stat >> key >> value) {
    if (key == "active_file" || key == "inactive_file") total += value;
  }
  return total;
}

int64_t left_in_cgroup(const char* limit_path, const char* used_path, const char* stat_path) {
  const int64_t limit = number_in(limit_path);
  const int64_t used = number_in(used_path);
  if (limit == kUnknown || used == kUnknown) return kUnknown;
  return std::max<int64_t>(0, limit - used + cached_file_bytes(stat_path));
}

}  // namespace

int64_t available_memory_bytes() {
  const int64_t v2 = left_in_cgroup("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
                                    "/sys/fs/cgroup/memory.stat");
  const int64_t v1 = left_in_cgroup("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                    "/sys/fs/cgroup/memory/memory.usage_in_bytes",
                                    "/sys/fs/cgroup/memory/memory.stat");
  // Half of what the type holds stands for "unknown", so that callers may add to it.
  return std::min({mem_available(), v2, v1, kUnknown / 2});
}

}  // namespace plateau

// What the machine has to give.
#pragma once

#include <cstdint>

namespace plateau {

/// Memory that this process may still take without swapping: what the kernel calls available,
/// capped by the cgroup's limit; INT64_MAX / 2 where neither is known.
int64_t available_memory_bytes();

}  // namespace plateau

// The points of a sweep: all combinations of the lists that a command line gives.
// Tested by tests/bench/sweep_test.cc.
#pragma once

#include <string>
#include <vector>

#include "bench/bench_point.h"

namespace plateau::bench {

struct Sweep {
  BenchPoint base;                 // everything that the lists below do not set
  std::vector<int64_t> n_inputs;   // ignored for kImage
  std::vector<KvOptions> budgets;  // `budget` of each is used
  std::vector<std::string> policies;
  std::vector<KvOptions> blocks;  // `block` and `block_unit` of each are used
  std::vector<CacheType> cache_types_k;
  std::vector<CacheType> cache_types_v;
  std::vector<int> threads;
};

/// In this order, the last varying fastest: threads, cache types, inputs, budgets, policies,
/// blocks. With a full cache there is nothing to choose: it appears once, not once per policy.
std::vector<BenchPoint> expand(const Sweep& sweep);

}  // namespace plateau::bench

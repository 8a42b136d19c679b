#include "bench/sweep.h"

#include "kv/policy.h"

namespace plateau::bench {
namespace {

void add_cache_points(const Sweep& sweep, BenchPoint point, std::vector<BenchPoint>& points) {
  for (const KvOptions& budget : sweep.budgets) {
    const bool is_full = budget.budget == 0;
    for (size_t i = 0; i < (is_full ? 1 : sweep.policies.size()); ++i) {
      for (const KvOptions& block : sweep.blocks) {
        KvOptions& kv = point.request.kv;
        kv.budget = budget.budget;
        kv.policy = is_full ? kv::kFullPolicy : sweep.policies[i];
        kv.block = block.block;
        kv.block_unit = block.block_unit;
        points.push_back(point);
      }
    }
  }
}

}  // namespace

std::vector<BenchPoint> expand(const Sweep& sweep) {
  const std::vector<int64_t> inputs =
      sweep.base.input == InputKind::kImage ? std::vector<int64_t>{0} : sweep.n_inputs;
  std::vector<BenchPoint> points;
  BenchPoint point = sweep.base;
  for (const int n_threads : sweep.threads) {
    point.engine.n_threads = n_threads;
    for (const CacheType type_k : sweep.cache_types_k) {
      point.engine.cache_type_k = type_k;
      for (const CacheType type_v : sweep.cache_types_v) {
        point.engine.cache_type_v = type_v;
        for (const int64_t n_input : inputs) {
          point.n_input = n_input;
          add_cache_points(sweep, point, points);
        }
      }
    }
  }
  return points;
}

}  // namespace plateau::bench

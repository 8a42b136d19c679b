#include <algorithm>

#include "base/check.h"
#include "base/nearest.h"
#include "kv/policies/policies.h"
#include "kv/policy.h"

namespace plateau::kv {
namespace {

constexpr PolicyEntry kPolicies[] = {
    {"snapkv", "what the question attends to; for a known question", make_snapkv},
    {"keydiff", "keys unlike the mean key; needs no question", make_keydiff},
    {"mix", "attention and diversity, mixed by each head's redundancy", make_mix},
    {"block-attention", "what each block's last tokens attend to; needs no question",
     make_block_attention},
    {"value-norm", "the longest values", make_value_norm},
    {"sink-recent", "the first and the latest tokens", make_sink_recent},
    {"random", "chosen at random", make_random},
    {"post-prefill-snapkv", "snapkv, once, after a full-cache prefill: memory is not bounded",
     make_post_prefill_snapkv},
};

void require(bool condition, const char* option, const char* expected, int got) {
  if (condition) return;
  throw_error(ErrorCode::kInvalidArgument, "[{}] expected {}, got {}", option, expected, got);
}

}  // namespace

std::span<const PolicyEntry> policies() { return kPolicies; }

std::unique_ptr<Policy> make_policy(const std::string& name, const PolicyOptions& options) {
  require(options.window >= 1 && options.window <= 1024, "--window", "1 to 1024 tokens",
          options.window);
  require(options.pool_kernel >= 1 && options.pool_kernel <= 255 && options.pool_kernel % 2 == 1,
          "--kernel", "an odd number from 1 to 255", options.pool_kernel);
  std::vector<std::string> names = {kFullPolicy};
  for (const PolicyEntry& entry : kPolicies) {
    if (name == entry.name) return entry.make(options);
    names.emplace_back(entry.name);
  }
  throw_error(ErrorCode::kInvalidArgument, "[--policy] expected one of {}, got {}{}",
              fmt::join(names, ", "), name, did_you_mean(name, names));
}

}  // namespace plateau::kv

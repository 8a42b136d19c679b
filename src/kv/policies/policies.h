// The makers of all policies; registry.cc lists them.
#pragma once

#include <memory>

#include "kv/policy.h"

namespace plateau::kv {

std::unique_ptr<Policy> make_snapkv(const PolicyOptions& options);
std::unique_ptr<Policy> make_post_prefill_snapkv(const PolicyOptions& options);
std::unique_ptr<Policy> make_block_attention(const PolicyOptions& options);
std::unique_ptr<Policy> make_keydiff(const PolicyOptions& options);
std::unique_ptr<Policy> make_mix(const PolicyOptions& options);
std::unique_ptr<Policy> make_value_norm(const PolicyOptions& options);
std::unique_ptr<Policy> make_sink_recent(const PolicyOptions& options);
std::unique_ptr<Policy> make_random(const PolicyOptions& options);

}  // namespace plateau::kv

// Greedy or sampled decoding, one token at a time, inside the same arena.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/sequence.h"
#include "kv/budget.h"
#include "model/sampler.h"
#include "model/vocab.h"
#include "plateau/request.h"

namespace plateau::engine {

struct DecodeOptions {
  int max_new_tokens = 128;
  int64_t first_position = 0;  // of the first generated token
  int n_recent = 0;            // latest generated tokens that are never evicted
};

struct DecodeResult {
  StopReason stop_reason = StopReason::kMaxTokens;
  int64_t n_tokens = 0;  // generated, with the end token
  double ms = 0;         // after the first token
};

/// `logits`: after the last prompt token. `on_token` sees each piece of text (whole UTF-8
/// characters); `on_first` is called when the first token is known. Either may throw to stop.
DecodeResult decode(std::vector<float> logits, const DecodeOptions& options,
                    const kv::BudgetPlan& budget, const model::Vocab& vocab,
                    model::Sampler& sampler, Sequence& sequence,
                    const std::function<void()>& on_first,
                    const std::function<void(const std::string&)>& on_text);

}  // namespace plateau::engine

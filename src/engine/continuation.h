// How likely given texts are as the beginning of the answer.
// Tested by tests/engine/continuation_test.cc against llama.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/sequence.h"
#include "model/vocab.h"
#include "plateau/request.h"

namespace plateau::engine {

/// log softmax(logits)[token], in double precision. REQUIRES: token < logits.size().
double log_prob(std::span<const float> logits, model::Token token);

/// `logits`: [n_vocab] after the last prompt token; `first_position`: of the first token behind it.
/// Leaves the sequence as it was. Errors: those of BlockRunner::run.
std::vector<ContinuationLikelihood> continuation_likelihoods(
    std::span<const float> logits, const std::vector<std::vector<model::Token>>& continuations,
    int64_t first_position, Sequence& sequence);

}  // namespace plateau::engine

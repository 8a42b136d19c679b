#include "engine/continuation.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace plateau::engine {

double log_prob(std::span<const float> logits, model::Token token) {
  PLATEAU_CHECK(token >= 0 && static_cast<size_t>(token) < logits.size());
  const double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - highest);
  return static_cast<double>(logits[static_cast<size_t>(token)]) - highest - std::log(sum);
}

std::vector<ContinuationLikelihood> continuation_likelihoods(
    std::span<const float> logits, const std::vector<std::vector<model::Token>>& continuations,
    int64_t first_position, Sequence& sequence) {
  std::vector<ContinuationLikelihood> result;
  for (const std::vector<model::Token>& tokens : continuations) {
    ContinuationLikelihood likelihood = {.log_prob = log_prob(logits, tokens.front()),
                                         .n_tokens = static_cast<int>(tokens.size())};
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      const Rows row = {sequence.runner().embed(std::span(tokens).subspan(i, 1)),
                        {kv::Position::sequential(
                            static_cast<int32_t>(first_position + static_cast<int64_t>(i)))}};
      likelihood.log_prob += log_prob(sequence.peek(row, static_cast<int>(i)), tokens[i + 1]);
    }
    result.push_back(likelihood);
  }
  return result;
}

}  // namespace plateau::engine

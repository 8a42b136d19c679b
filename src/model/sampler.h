// Picks the next token from logits, by libllama's samplers.
#pragma once

#include <memory>
#include <span>

#include "model/vocab.h"
#include "plateau/options.h"

namespace plateau::model {

class Sampler {
 public:
  /// Errors: kInvalidArgument for an option out of range.
  explicit Sampler(const SamplingOptions& options);
  ~Sampler();
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;

  /// `logits`: [n_vocab]. Ties go to the lower id when temperature is 0.
  Token sample(std::span<const float> logits);

 private:
  struct Chain;
  std::unique_ptr<Chain> chain_;
};

}  // namespace plateau::model

#include "model/sampler.h"

#include <cmath>
#include <vector>

#include "base/check.h"
#include "llama-cpp.h"

namespace plateau::model {
namespace {

void require(bool condition, const char* option, const char* expected, double got) {
  if (condition) return;
  throw_error(ErrorCode::kInvalidArgument, "[{}] expected {}, got {}", option, expected, got);
}

}  // namespace

struct Sampler::Chain {
  llama_sampler_ptr sampler;
  std::vector<llama_token_data> candidates;
};

Sampler::Sampler(const SamplingOptions& options) : chain_(std::make_unique<Chain>()) {
  require(std::isfinite(options.temperature) && options.temperature >= 0, "--temp",
          "a number of at least 0", options.temperature);
  require(options.top_k >= 0, "--top-k", "a number of at least 0", options.top_k);
  require(options.top_p > 0 && options.top_p <= 1, "--top-p", "a number in (0, 1]", options.top_p);
  require(options.min_p >= 0 && options.min_p <= 1, "--min-p", "a number in [0, 1]", options.min_p);
  chain_->sampler.reset(llama_sampler_chain_init(llama_sampler_chain_default_params()));
  const auto add = [&](llama_sampler* stage) {
    llama_sampler_chain_add(chain_->sampler.get(), stage);
  };
  if (options.temperature == 0) {
    add(llama_sampler_init_greedy());
    return;
  }
  if (options.top_k > 0) add(llama_sampler_init_top_k(options.top_k));
  if (options.top_p < 1) add(llama_sampler_init_top_p(options.top_p, /*min_keep=*/1));
  if (options.min_p > 0) add(llama_sampler_init_min_p(options.min_p, /*min_keep=*/1));
  add(llama_sampler_init_temp(options.temperature));
  add(llama_sampler_init_dist(options.seed));
}

Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;

Token Sampler::sample(std::span<const float> logits) {
  auto& candidates = chain_->candidates;
  candidates.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    candidates[i] = {static_cast<Token>(i), logits[i], 0.0f};
  }
  llama_token_data_array array = {candidates.data(), candidates.size(), /*selected=*/-1,
                                  /*sorted=*/false};
  llama_sampler_apply(chain_->sampler.get(), &array);
  PLATEAU_CHECK(array.selected >= 0 && array.selected < static_cast<int64_t>(array.size));
  const Token token = array.data[array.selected].id;
  llama_sampler_accept(chain_->sampler.get(), token);
  return token;
}

}  // namespace plateau::model

// Likelihoods of continuations against llama.cpp's logits for the same tokens.
#include "engine/continuation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "model/backend.h"
#include "model/language_model.h"
#include "support/compare.h"
#include "support/llama_oracle.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::test {
namespace {

using Tokens = std::vector<model::Token>;

/// sum over the vocabulary, in long double.
double reference_log_prob(std::span<const float> logits, model::Token token) {
  long double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<long double>(logit) - logits[static_cast<size_t>(token)]);
  }
  return static_cast<double>(-std::log(sum));
}

TEST(LogProb, IsTheLogarithmOfASoftmax) {
  EXPECT_NEAR(engine::log_prob(std::vector<float>{0, 0, 0, 0}, 2), std::log(0.25), 1e-15);
  // 1 + e^-1 + e^-2 = 1.503214724408055
  EXPECT_NEAR(engine::log_prob(std::vector<float>{3, 2, 1}, 0), -std::log(1.503214724408055),
              1e-14);
  EXPECT_NEAR(engine::log_prob(std::vector<float>{-1e4F, 1e4F}, 0), -2e4, 1e-9);
}

class ContinuationTest : public testing::TestWithParam<const char*> {
 protected:
  ContinuationTest() {
    write_tiny_text({.arch = GetParam(), .qk_gain = 1.5F}, path_);
    model_.emplace(model::LanguageModel::load(path_, {}));
  }

  engine::Rows rows_of(engine::Sequence& sequence, const Tokens& tokens, int first) {
    engine::Rows rows = {sequence.runner().embed(tokens), {}};
    for (size_t i = 0; i < tokens.size(); ++i) {
      rows.positions.push_back(kv::Position::sequential(first + static_cast<int32_t>(i)));
    }
    return rows;
  }
  engine::Sequence new_sequence(int n_arena) {
    return {*model_, backends_, {.n_arena = n_arena}, table_};
  }

  static kv::TokenList sequential(int n) {
    std::vector<kv::TokenInfo> info(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) {
      info[static_cast<size_t>(i)].position = kv::Position::sequential(i);
    }
    return kv::TokenList(info);
  }

  TempDir dir_;
  std::string path_ = dir_.file("tiny.gguf");
  kv::TokenList table_ = sequential(64);
  std::optional<model::LanguageModel> model_;
  model::Backends backends_{model::Device::cpu(), /*n_threads=*/1};
};

const Tokens kPrompt = {17, 5, 40, 33, 21, 9, 60, 2, 11, 48, 30, 7};

TEST_P(ContinuationTest, AgreesWithLlamaCpp) {
  LlamaOracle oracle(path_);
  engine::Sequence sequence = new_sequence(32);
  const std::vector<float> logits = sequence.append(rows_of(sequence, kPrompt, 0), 12, true, false);
  const std::vector<Tokens> continuations = {{3}, {8, 50, 8}, {33, 21, 9, 60, 2}, {3, 3}};
  const auto got = engine::continuation_likelihoods(logits, continuations, 12, sequence);
  ASSERT_EQ(got.size(), continuations.size());
  for (size_t i = 0; i < continuations.size(); ++i) {
    oracle.clear();
    std::vector<float> next = oracle.decode(kPrompt);
    double want = 0;
    for (const model::Token token : continuations[i]) {
      want += reference_log_prob(next, token);
      next = oracle.decode(std::span(&token, 1));
    }
    EXPECT_EQ(got[i].n_tokens, static_cast<int>(continuations[i].size()));
    // The kernels are the same; the sums differ in the last digits of a double.
    EXPECT_NEAR(got[i].log_prob, want, 1e-9) << i;
    EXPECT_LT(got[i].log_prob, 0);
  }
}

TEST_P(ContinuationTest, LeavesTheSequenceAsItWas) {
  engine::Sequence peeked = new_sequence(32);
  engine::Sequence plain = new_sequence(32);
  const auto prompt_logits = peeked.append(rows_of(peeked, kPrompt, 0), 12, true, false);
  plain.append(rows_of(plain, kPrompt, 0), 12, true, false);
  engine::continuation_likelihoods(prompt_logits, {{8, 50, 8}, {1, 2, 3, 4}}, 12, peeked);
  EXPECT_EQ(peeked.n_held(), 12);
  const engine::Rows row = rows_of(plain, {44}, 12);
  EXPECT_TRUE(bit_equal(peeked.append(row, 13, true, false), plain.append(row, 13, true, false)));
}

INSTANTIATE_TEST_SUITE_P(Decoders, ContinuationTest, testing::Values("qwen2", "qwen3"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace plateau::test

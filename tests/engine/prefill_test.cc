#include "engine/prefill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "engine/decode.h"
#include "kv/sequence_harness.h"
#include "model/sampler.h"
#include "plateau/error.h"
#include "support/compare.h"
#include "support/synth.h"

namespace plateau::test {
namespace {

const TinyTextModel kTiny = {.arch = "qwen3", .n_ff = 64, .qk_gain = 1.5F};
constexpr int kWindow = 8;

/// The world's noise, as a picture's encoder would give it.
class NoiseSource final : public engine::UnitSource {
 public:
  explicit NoiseSource(const TinyWorld& world) : world_(world) {}

  std::span<const float> unit(int medium, int unit) override {
    size_t first = 0;
    for (const engine::Piece& piece : world_.prompt().pieces()) {
      const auto n = static_cast<size_t>(piece.n_tokens());
      if (piece.medium == medium && piece.unit == unit) {
        const auto n_embd = world_.rows().embeddings.size() / world_.rows().positions.size();
        return std::span(world_.rows().embeddings).subspan(first * n_embd, n * n_embd);
      }
      first += n;
    }
    ADD_FAILURE() << "asked for unit " << unit << " of picture " << medium;
    return {};
  }

 private:
  const TinyWorld& world_;
};

engine::PrefillResult prefill(TinyWorld& world, PromptRun& run,
                              const std::function<void(int, int64_t)>& on_block) {
  NoiseSource source(world);
  return engine::prefill(world.prompt(), run.blocks(), run.plan(), run.sequence(), &source,
                         on_block);
}

TEST(Prefill, RunsTheBlocksOfThePlan) {
  TinyWorld world(kTiny);
  for (const char* name : {"snapkv", "keydiff", "post-prefill-snapkv"}) {
    for (const int n_block : {1, 5, 7, 12, 64, 1000}) {
      SCOPED_TRACE(testing::Message() << name << " " << n_block);
      const auto policy = kv::make_policy(name, {.window = kWindow});
      const RunOptions options = {
          .budget = 40, .n_block = n_block, .policy_options = {.window = kWindow}};
      PromptRun by_hand(world, policy.get(), options), run(world, policy.get(), options);
      std::vector<int64_t> done;
      const engine::PrefillResult result = prefill(world, run, [&](int block, int64_t n_done) {
        EXPECT_EQ(block, static_cast<int>(done.size()));
        done.push_back(n_done);
      });
      EXPECT_TRUE(bit_equal(result.logits, by_hand.finish()));
      EXPECT_EQ(run.kept(), by_hand.kept());
      EXPECT_EQ(done.size(), run.blocks().size());
      EXPECT_EQ(done.back(), world.n_prompt());
    }
  }
}

TEST(Prefill, WhatACallbackThrowsStopsIt) {
  TinyWorld world(kTiny);
  const auto policy = kv::make_policy("keydiff", {});
  PromptRun run(world, policy.get(), {.budget = 40, .n_block = 12});
  EXPECT_THROW(prefill(world, run,
                       [](int block, int64_t) {
                         if (block == 2) throw Error(ErrorCode::kCancelled, "enough");
                       }),
               Error);
  EXPECT_EQ(run.slots().n_total(), 31);  // the third block ends here: text, marker, two tiles
  EXPECT_NO_THROW(run.slots().check_integrity());
}

TEST(QuestionRows, AreTheLastTextBehindThePicture) {
  TinyWorld world(kTiny);
  const kv::KvCache cache_for_embedding(world.model(), 1, CacheType::kF16, CacheType::kF16);
  PromptRun run(world, nullptr, {});
  for (const int window : {1, 4, 10, 32}) {
    const engine::Rows rows =
        engine::question_rows(world.prompt(), run.sequence().runner(), window);
    const int n = std::min(window, 10);  // the closing marker and nine tokens
    const engine::Rows want = world.slice(world.n_prompt() - n, world.n_prompt());
    EXPECT_EQ(rows.positions, want.positions);
    EXPECT_TRUE(bit_equal(rows.embeddings, want.embeddings));
  }
}

/// Generates with the first seed that does not end its turn before `n` tokens: a random model may
/// at any step.
engine::DecodeResult generate(TinyWorld& world, PromptRun& run, const std::vector<float>& logits,
                              int n, uint32_t seed, std::string& text) {
  model::Sampler sampler({.temperature = 1.0F, .seed = seed});
  int n_first = 0;
  const engine::DecodeResult result = engine::decode(
      logits,
      {.max_new_tokens = n, .first_position = world.prompt().next_position(), .n_recent = kWindow},
      run.plan(), world.model().vocab(), sampler, run.sequence(), [&] { ++n_first; },
      [&](const std::string& more) { text += more; });
  EXPECT_EQ(n_first, 1);
  return result;
}

TEST(Decode, LongAnswersStayInTheArena) {
  constexpr int kTokens = 250;
  TinyWorld world(kTiny);
  const auto policy = kv::make_policy("keydiff", {});
  bool was_long = false;
  for (uint32_t seed = 1; seed <= 20 && !was_long; ++seed) {
    PromptRun run(
        world, policy.get(),
        {.budget = 48, .n_block = 12, .n_decode = kTokens, .policy_options = {.window = kWindow}});
    const std::vector<float> logits = run.finish();
    std::string text;
    const engine::DecodeResult result = generate(world, run, logits, kTokens, seed, text);
    EXPECT_LE(run.slots().n_held(), run.plan().n_decode_limit);
    // The last one is never run.
    EXPECT_EQ(run.slots().n_total(), world.n_prompt() + result.n_tokens - 1);
    EXPECT_TRUE(run.is_untouched_beyond_arena());
    EXPECT_FALSE(text.empty());
    was_long = result.stop_reason == StopReason::kMaxTokens;
    if (was_long) {
      EXPECT_EQ(result.n_tokens, kTokens);
    }
  }
  EXPECT_TRUE(was_long) << "every seed ended its turn early: the test tests nothing";
}

}  // namespace
}  // namespace plateau::test

// The engine as a caller sees it, on the pair of models that ships with the project.
#include "plateau/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/engine_fixture.h"
#include "kv/kv_cache.h"

namespace plateau {
namespace {

using testing::HasSubstr;

// 4 layers, 2 kv heads of 32, keys and values of 2 bytes.
constexpr int64_t kBytesPerToken = 4 * 2 * 32 * 2 * 2;
constexpr int kPairs = 4 * 2;  // (layer, kv head)

TEST_F(EngineTest, ReadsTheNumberOnTheObject) {
  const Answer answer = engine().run(ask());
  EXPECT_EQ(answer.text, std::to_string(scene().drawings[0].digit));
  EXPECT_EQ(answer.stop_reason, StopReason::kEndOfAnswer);
}

TEST_F(EngineTest, TheAnswerDoesNotDependOnTheBlockSize) {
  const std::string want = answer_to(ask());
  for (const int block : {1, 7, 64, 1024}) {
    EXPECT_EQ(answer_to(ask({.block = block})), want) << block;
  }
  for (const int block : {7, 1024}) {
    // As much as fits, and more: the policy has nothing to do.
    EXPECT_EQ(answer_to(ask({.budget = 1000, .block = block})), want) << block;
    // Less than half the prompt.
    EXPECT_EQ(answer_to(ask({.budget = 100, .block = block})), want) << block;
  }
  EXPECT_EQ(answer_to(ask({.budget = 100, .strict = true, .bulk = false, .block = 32})), want);
}

TEST_F(EngineTest, TheSameRequestHasTheSameAnswer) {
  for (const char* policy : {"snapkv", "mix", "random"}) {
    std::vector<std::vector<std::vector<int32_t>>> kept;
    std::vector<std::string> answers;
    for (int i = 0; i < 2; ++i) {
      Request request = ask({.budget = 80, .policy = policy, .block = 32});
      request.sampling = {.temperature = 1.5F, .seed = 9};
      RequestCallbacks callbacks;
      callbacks.on_block_kept = [&](const BlockTrace& trace) {
        kept.resize(static_cast<size_t>(i) + 1);
        kept.back() = trace.tokens;
      };
      answers.push_back(engine().run(request, callbacks).text);
    }
    EXPECT_EQ(answers[0], answers[1]) << policy;
    EXPECT_EQ(kept.at(0), kept.at(1)) << policy;
  }
}

TEST_F(EngineTest, UsageAddsUp) {
  Request request = ask({.budget = 100, .block = 32});
  Usage planned;
  std::vector<Progress> progress;
  std::string streamed;
  RequestCallbacks callbacks;
  callbacks.on_planned = [&](const Usage& usage) { planned = usage; };
  callbacks.on_progress = [&](const Progress& now) { progress.push_back(now); };
  callbacks.on_text = [&](std::string_view text) { streamed += text; };
  const Answer answer = engine().run(request, callbacks);
  const Usage& usage = answer.usage;
  EXPECT_EQ(streamed, answer.text);
  EXPECT_EQ(usage.visual_tokens, kVisualTokens);
  EXPECT_EQ(usage.prompt_tokens, usage.text_tokens + usage.visual_tokens);
  EXPECT_EQ(usage.kv_budget, 100);
  EXPECT_EQ(usage.kv_kept_max, 100);
  EXPECT_EQ(usage.evicted_tokens, usage.prompt_tokens - 100);
  EXPECT_EQ(usage.kv_arena_tokens, kv::padded_slots(100 + 32 + 32));
  EXPECT_EQ(usage.kv_bytes, usage.kv_arena_tokens * kBytesPerToken);
  EXPECT_GT(usage.encode_ms, 0);
  EXPECT_GT(usage.prefill_ms, 0);
  EXPECT_GE(usage.ttft_ms, usage.encode_ms + usage.prefill_ms);
  EXPECT_LE(usage.score_ms + usage.select_ms + usage.compact_ms, usage.prefill_ms);
  EXPECT_EQ(usage.decode_tokens, 2);  // a digit and the end of the turn
  EXPECT_GT(usage.compute_bytes, 0);
  EXPECT_GT(usage.encoder_bytes, 0);

  EXPECT_EQ(planned.prompt_tokens, usage.prompt_tokens);
  EXPECT_EQ(planned.blocks, usage.blocks);
  EXPECT_EQ(planned.kv_bytes, usage.kv_bytes);
  ASSERT_EQ(static_cast<int64_t>(progress.size()), usage.blocks);
  EXPECT_EQ(progress.back().tokens_done, usage.prompt_tokens);
  EXPECT_EQ(progress.back().tokens, usage.prompt_tokens);
  EXPECT_EQ(progress.back().tiles_done, kCols * kRows + 1);
  for (size_t i = 1; i < progress.size(); ++i) {
    EXPECT_GT(progress[i].tokens_done, progress[i - 1].tokens_done);
  }

  ASSERT_EQ(usage.images.size(), 1U);
  const ImageReport& image = usage.images[0];
  EXPECT_EQ(image.width, kCols * kTile);
  EXPECT_EQ(image.used_height, kRows * kTile);
  EXPECT_EQ(image.n_cols, kCols);
  EXPECT_EQ(image.n_rows, kRows);
  EXPECT_EQ(image.n_tiles, kCols * kRows + 1);
  EXPECT_EQ(image.tokens_made, kVisualTokens);
  EXPECT_TRUE(image.kept_share.empty());  // was not asked for
}

TEST_F(EngineTest, TheTraceShowsNoMoreThanTheBudget) {
  for (const bool strict : {false, true}) {
    for (const bool bulk : {false, true}) {
      SCOPED_TRACE(testing::Message() << strict << bulk);
      Request request = ask({.budget = 100, .strict = strict, .bulk = bulk, .block = 28});
      request.want_kept_share = true;
      std::vector<BlockTrace> traces;
      RequestCallbacks callbacks;
      callbacks.on_block_kept = [&](const BlockTrace& trace) { traces.push_back(trace); };
      const Usage usage = engine().run(request, callbacks).usage;
      ASSERT_EQ(static_cast<int64_t>(traces.size()), usage.blocks);
      size_t largest = 0;
      for (size_t i = 0; i < traces.size(); ++i) {
        const BlockTrace& trace = traces[i];
        EXPECT_EQ(trace.block, static_cast<int>(i));
        // With 1-D rotary embedding, a token's position is its index.
        const int64_t n_before = i == 0 ? 0 : traces[i - 1].tokens_done;
        ASSERT_EQ(static_cast<int64_t>(trace.positions.size()), trace.tokens_done - n_before);
        auto index = static_cast<int32_t>(n_before);
        for (const auto& position : trace.positions) {
          EXPECT_THAT(position, testing::Each(index));
          ++index;
        }
        ASSERT_EQ(trace.n_layer * trace.n_head_kv, kPairs);
        ASSERT_EQ(trace.tokens.size(), static_cast<size_t>(kPairs));
        for (const std::vector<int32_t>& kept : trace.tokens) {
          EXPECT_LE(kept.size(), 100U);
          EXPECT_EQ(kept.size(), trace.tokens[0].size());
          EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end(), std::less_equal<>()));
          EXPECT_LT(kept.back(), trace.tokens_done);
          largest = std::max(largest, kept.size());
          // The first four are always there.
          EXPECT_EQ(kept[3], 3);
        }
      }
      EXPECT_EQ(static_cast<int64_t>(largest), usage.kv_kept_max);
      EXPECT_EQ(traces.back().tokens_done, usage.prompt_tokens);

      // The share per cell of the picture, summed, is what the last trace holds of it.
      const ImageReport& image = usage.images[0];
      EXPECT_EQ(image.grid_cols, 2 * kCols);
      EXPECT_EQ(image.grid_rows, 2 * kRows);
      ASSERT_EQ(image.kept_share.size(), static_cast<size_t>(4 * kCols * kRows));
      for (const float share : image.kept_share) {
        EXPECT_GE(share, 0.0F);
        EXPECT_LE(share, 1.0F + 1e-5F);
      }
      // Text behind the picture is kept whole, so the picture's end is known from the prompt's.
      const double shares = std::accumulate(image.kept_share.begin(), image.kept_share.end(), 0.0);
      EXPECT_LE(shares, static_cast<double>(image.tokens_kept) + 0.51);
      EXPECT_GE(shares, static_cast<double>(image.tokens_kept) - kTokensPerTile - 0.51);
      const auto n_kept = static_cast<int64_t>(traces.back().tokens[0].size());
      EXPECT_EQ(image.tokens_kept, n_kept - usage.text_tokens);
    }
  }
}

TEST_F(EngineTest, WithoutABudgetEveryCellIsKept) {
  Request request = ask();
  request.want_kept_share = true;
  const Usage usage = engine().run(request).usage;
  EXPECT_EQ(usage.kv_budget, 0);
  EXPECT_EQ(usage.evicted_tokens, 0);
  EXPECT_EQ(usage.images[0].tokens_kept, kVisualTokens);
  for (const float share : usage.images[0].kept_share) EXPECT_NEAR(share, 1.0F, 1e-5F);
}

TEST_F(EngineTest, StrictModeNeedsNoRoomForABlock) {
  KvOptions kv = {.budget = 150, .strict = true, .bulk = false, .block = 100};
  const Usage strict = engine().run(ask(kv)).usage;
  EXPECT_EQ(strict.kv_arena_tokens, kv::padded_slots(150 + 32));
  kv.strict = false;
  EXPECT_EQ(engine().run(ask(kv)).usage.kv_arena_tokens, kv::padded_slots(150 + 100 + 32));
}

/// The first number in a text after "at least ".
int least_in(const std::string& text) {
  const size_t at = text.find("at least ");
  EXPECT_NE(at, std::string::npos) << text;
  return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + 9);
}

TEST_F(EngineTest, ABudgetThatIsTooSmallSaysHowMuchIsNeeded) {
  for (const bool strict : {false, true}) {
    KvOptions kv = {.budget = 5, .strict = strict, .bulk = false, .block = 16};
    const Error error = error_of(ask(kv));
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("--kv-budget"));
    // What it says is enough, and one less is not.
    kv.budget = least_in(error.what());
    EXPECT_GT(kv.budget, 5);
    EXPECT_FALSE(answer_to(ask(kv)).empty());
    --kv.budget;
    EXPECT_EQ(error_of(ask(kv)).code(), ErrorCode::kInvalidArgument);
  }
}

TEST_F(EngineTest, WrongOptionsAreRefusedByName) {
  const auto expect_refused = [](const Request& request, const char* part) {
    const Error error = error_of(request);
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr(part));
  };
  expect_refused(ask({.budget = 100, .policy = "keydif"}), "did you mean keydiff?");
  expect_refused(ask({.policy = "snapvk"}), "did you mean snapkv?");  // even where it is not used
  expect_refused(ask({.budget = -1}), "--kv-budget");
  expect_refused(ask({.block = -1}), "--block");
  expect_refused(ask({.policy_options = {.window = 0}}), "--window");
  Request request = ask();
  request.max_new_tokens = 0;
  expect_refused(request, "-n");
  request = ask();
  request.image.max_tiles = -1;
  expect_refused(request, "--max-tiles");
  request = ask();
  request.image.max_visual_tokens = -1;
  expect_refused(request, "--max-visual-tokens");
  request = ask();
  request.sampling.temperature = -1;
  EXPECT_EQ(error_of(request).code(), ErrorCode::kInvalidArgument);
}

TEST_F(EngineTest, MaxVisualTokensLowersTheResolution) {
  Request request = ask();
  request.image.max_visual_tokens = 60;
  const Usage usage = engine().run(request).usage;
  EXPECT_GT(usage.visual_tokens, 0);
  EXPECT_LE(usage.visual_tokens, 60);
  EXPECT_LT(usage.images[0].used_width, kCols * kTile);
  EXPECT_FALSE(usage.notes.empty());
}

TEST_F(EngineTest, AFailedRequestLeavesTheEngineUsable) {
  const std::string want = answer_to(ask({.budget = 100, .block = 32}));
  Request missing = ask();
  missing.messages[0].content[0] = ImagePart{"no-such-picture.png"};
  EXPECT_EQ(error_of(missing).code(), ErrorCode::kNotFound);
  EXPECT_EQ(answer_to(ask({.budget = 100, .block = 32})), want);
  EXPECT_EQ(error_of(ask({.budget = 1})).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(answer_to(ask({.budget = 100, .block = 32})), want);
  RequestCallbacks callbacks;
  callbacks.on_progress = [](const Progress& progress) {
    if (progress.tokens_done > 50) throw std::runtime_error("the caller's own");
  };
  EXPECT_THROW(engine().run(ask(), callbacks), std::runtime_error);
  EXPECT_EQ(answer_to(ask({.budget = 100, .block = 32})), want);
}

// Cancelled at many moments: while encoding, in a block, between blocks, in decoding.
TEST_F(EngineTest, CancelledAtAnyTimeItAnswersTheNext) {
  const Request request = ask({.budget = 100, .block = 32});
  int n_polls = 0;
  RequestCallbacks counting;
  counting.should_cancel = [&] { return ++n_polls, false; };
  const std::string want = engine().run(request, counting).text;
  ASSERT_GT(n_polls, 50);
  for (int i = 0; i < 8; ++i) {
    int n_left = n_polls * i / 8;
    RequestCallbacks callbacks;
    callbacks.should_cancel = [&] { return n_left-- <= 0; };
    try {
      engine().run(request, callbacks);
      ADD_FAILURE() << "not cancelled at " << i;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCancelled) << error.what();
    }
    if (i % 4 == 3) {
      EXPECT_EQ(answer_to(request), want);
    }
  }
}

TEST_F(EngineTest, TextAloneNeedsNoPicture) {
  Request request;
  request.messages = {{"user", {TextPart{"What number is on the cat?"}}}};
  request.max_new_tokens = 3;
  const Answer answer = engine().run(request);
  EXPECT_EQ(answer.usage.visual_tokens, 0);
  EXPECT_TRUE(answer.usage.images.empty());
  EXPECT_EQ(answer.usage.prompt_tokens, answer.usage.text_tokens);
}

TEST_F(EngineTest, TwoPicturesAreTwoReports) {
  Request request = ask({.budget = 150, .block = 64});
  request.messages[0].content.insert(request.messages[0].content.begin(), ImagePart{picture()});
  const Usage usage = engine().run(request).usage;
  ASSERT_EQ(usage.images.size(), 2U);
  EXPECT_EQ(usage.visual_tokens, 2 * kVisualTokens);
  EXPECT_EQ(usage.kv_kept_max, 150);
  const int64_t kept = usage.images[0].tokens_kept + usage.images[1].tokens_kept;
  EXPECT_NEAR(static_cast<double>(kept), static_cast<double>(150 - usage.text_tokens), 1.0);
}

TEST(EngineOpen, WithoutAProjectorAPictureIsAnError) {
  Engine engine = open();
  Request request;
  request.messages = {{"user", {ImagePart{"a.png"}, TextPart{"What is it?"}}}};
  try {
    engine.run(request);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("--mmproj"));
  }
}

TEST(EngineOpen, AMissingFileIsNotFound) {
  try {
    EngineOptions options;
    options.model_path = "no-such-model.gguf";
    Engine::open(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("no-such-model.gguf"));
  }
}

}  // namespace
}  // namespace plateau

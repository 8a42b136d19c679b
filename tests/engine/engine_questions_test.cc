// What `plateau eval` asks an engine beyond an answer: kept regions, likelihoods of continuations,
// embeddings that are held between requests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/engine_fixture.h"

namespace plateau {
namespace {

using testing::HasSubstr;

// A region's counts against the trace of all kept tokens, found by hand.
TEST_F(EngineTest, RegionsCountWhatIsKeptPerLayerAndHead) {
  // Tiles (2, 1) and (3, 1): token columns 4..7, rows 2..3. A pixel less and it touches the same.
  const ImageRegion two_tiles = {
      .x = 2 * kTile + 1, .y = kTile + 1, .width = 2 * kTile - 2, .height = kTile - 2};
  const ImageRegion everything = {.width = 1e9, .height = 1e9};
  const ImageRegion corner = {.x = -5, .y = -5, .width = 6, .height = 6};
  Request request = ask({.budget = 80, .block = 32});
  request.regions = {two_tiles, everything, corner};
  BlockTrace last;
  RequestCallbacks callbacks;
  callbacks.on_block_kept = [&](const BlockTrace& trace) { last = trace; };
  const Usage usage = engine().run(request, callbacks).usage;
  ASSERT_EQ(usage.regions.size(), 3U);
  EXPECT_EQ(usage.regions[0].tokens, 8);
  EXPECT_EQ(usage.regions[1].tokens, 4 * kCols * kRows);
  EXPECT_EQ(usage.regions[2].tokens, 1);
  // Tiles follow one another in reading order; what is before the picture is known from the text
  // behind it, which is kept to its end.
  const auto n_behind = static_cast<int32_t>(usage.prompt_tokens) - kVisualTokens;
  int32_t first = 0;
  for (; first <= n_behind; ++first) {
    int64_t n = 0;
    for (const auto& tokens : last.tokens) {
      n += std::count_if(tokens.begin(), tokens.end(),
                         [&](int32_t p) { return p >= first && p < first + 4 * kCols * kRows; });
    }
    int64_t want = 0;
    for (const int32_t kept : usage.regions[1].tokens_kept) want += kept;
    if (n == want) break;
  }
  ASSERT_LE(first, n_behind) << "no place of the picture explains the counts";
  for (int il = 0; il < 4; ++il) {
    for (int head = 0; head < 2; ++head) {
      const auto pair = static_cast<size_t>(il * 2 + head);
      const std::vector<int32_t>& tokens = last.tokens[pair];
      const auto n_in = [&](int tile, int n_tiles) {
        const int32_t begin = first + tile * kTokensPerTile;
        return std::count_if(tokens.begin(), tokens.end(), [&](int32_t p) {
          return p >= begin && p < begin + n_tiles * kTokensPerTile;
        });
      };
      EXPECT_EQ(usage.regions[0].tokens_kept[pair], n_in(kCols + 2, 2)) << pair;
      EXPECT_EQ(usage.regions[1].tokens_kept[pair], n_in(0, kCols * kRows)) << pair;
    }
  }
}

TEST_F(EngineTest, RegionsOutsideThePictureAreRefused) {
  for (const ImageRegion& region :
       {ImageRegion{.image = 1, .width = 1, .height = 1}, ImageRegion{.image = -1, .width = 1},
        ImageRegion{.width = 0, .height = 1}, ImageRegion{.x = 1e6, .width = 1, .height = 1},
        ImageRegion{.x = std::nan(""), .width = 1, .height = 1}}) {
    Request request = ask();
    request.regions = {region};
    EXPECT_EQ(error_of(request).code(), ErrorCode::kInvalidArgument);
  }
}

TEST_F(EngineTest, ContinuationsDoNotChangeTheAnswer) {
  for (const KvOptions& kv :
       {KvOptions{}, KvOptions{.budget = 80, .block = 32},
        KvOptions{.budget = 150, .strict = true, .bulk = false, .block = 32}}) {
    Request request = ask(kv);
    const std::string want = answer_to(request);
    request.continuations = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "12345"};
    const Answer answer = engine().run(request);
    EXPECT_EQ(answer.text, want);
    ASSERT_EQ(answer.continuations.size(), 11U);
    EXPECT_EQ(answer.continuations[10].n_tokens, 5);
    // Greedy decoding began with the likeliest.
    const auto likeliest =
        std::max_element(answer.continuations.begin(), answer.continuations.end() - 1,
                         [](const auto& a, const auto& b) { return a.log_prob < b.log_prob; });
    EXPECT_EQ(std::to_string(likeliest - answer.continuations.begin()), want);
  }
}

TEST_F(EngineTest, ContinuationsNeedTextAndRoom) {
  Request request = ask();
  request.continuations = {"1", ""};
  EXPECT_EQ(error_of(request).code(), ErrorCode::kInvalidArgument);
  request.continuations = {std::string(5000, '1')};
  EXPECT_EQ(error_of(request).code(), ErrorCode::kInvalidArgument);
  request = ask({.budget = 80, .block = 16});
  request.continuations = {std::string(100, '1')};
  const Error error = error_of(request);
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.what(), HasSubstr("--block"));
}

TEST_F(EngineTest, TheEmbeddingCacheChangesNoAnswer) {
  EngineOptions options;
  options.model_path = model_file("pico-internvl-text.gguf");
  options.mmproj_path = model_file("pico-internvl-mmproj.gguf");
  options.n_threads = 1;
  options.embedding_cache_bytes = 1 << 20;
  Engine caching = Engine::open(options);
  const Answer first = caching.run(ask({.budget = 80, .block = 32}));
  EXPECT_EQ(first.usage.encoded_tiles, kCols * kRows + 1);
  // Another budget and block: units are asked for in other pieces.
  for (const KvOptions& kv : {KvOptions{.budget = 80, .block = 32}, KvOptions{.block = 3}}) {
    const Answer again = caching.run(ask(kv));
    EXPECT_EQ(again.usage.encoded_tiles, 0);
    EXPECT_EQ(again.text, answer_to(ask(kv)));
  }
  Request smaller = ask();
  smaller.image.max_visual_tokens = 60;
  EXPECT_GT(caching.run(smaller).usage.encoded_tiles, 0);
  options.embedding_cache_bytes = -1;
  EXPECT_THROW(Engine::open(options), Error);
}

}  // namespace
}  // namespace plateau

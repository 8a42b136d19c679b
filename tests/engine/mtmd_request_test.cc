// Requests with pictures that llama.cpp's library encodes: what is planned against what is held,
// what is said, what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/mtmd_harness.h"
#include "plateau/plan.h"
#include "support/expect_error.h"
#include "support/memory_figures.h"

namespace plateau::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

int64_t part_bytes(const Plan& plan, const std::string& name) {
  int64_t total = 0;
  for (const MemoryPart& part : plan.memory) total += part.name == name ? part.bytes : 0;
  return total;
}

Answer run(const MtmdPair& pair, const Request& request) {
  return Engine::open(pair.options()).run(request);
}

TEST(MtmdRequest, IsAnsweredAndSaysWhoEncodes) {
  for (const MtmdPair& pair : {llava_pair(), smolvlm_pair()}) {
    const Answer answer = run(pair, pair.ask({{200, 150}}));
    ASSERT_EQ(answer.usage.images.size(), 1U);
    const ImageReport& image = answer.usage.images[0];
    EXPECT_GE(image.n_tiles, 1);
    EXPECT_EQ(image.used_width, 200);
    EXPECT_GT(image.tokens_made, 0);
    EXPECT_EQ(image.tokens_kept, image.tokens_made);
    EXPECT_EQ(answer.usage.visual_tokens, image.tokens_made);
    EXPECT_EQ(answer.usage.encoded_tiles, image.n_tiles);
    EXPECT_THAT(answer.usage.notes, Contains(HasSubstr("not bounded")));
  }
  // Text alone needs no encoder.
  const MtmdPair pair = llava_pair();
  EXPECT_THAT(run(pair, pair.ask({})).usage.notes,
              testing::Not(Contains(HasSubstr("not bounded"))));
}

// Wide towers, where the graph is the most; large pictures, where the pixels are.
TEST(MtmdRequest, HoldsNoMoreThanPlanned) {
  const TinyIdefics3 smol = {.chunk = 112, .n_embd = 128, .n_ff = 512};
  for (const auto& size : {std::pair(30, 20), {1500, 1000}, {4000, 60}}) {
    for (const MtmdPair& pair :
         {llava_pair(), llava_pair({.chunk = 336, .n_embd = 128, .n_ff = 512}),
          llava_pair({.is_clip = false, .grid_sizes = {56, 112, 112, 56, 112, 112}}),
          smolvlm_pair(smol), smolvlm_pair({.chunk = 112, .longest_edge = 0})}) {
      SCOPED_TRACE(testing::Message() << size.first << " x " << size.second);
      const Request request = pair.ask({size, {50, 50}});
      const Plan planned = plan(pair.options(), request);
      const Usage usage = run(pair, planned.request).usage;
      EXPECT_GT(usage.encoder_bytes, 0);
      EXPECT_LE(usage.encoder_bytes, part_bytes(planned, "encoder"));
      EXPECT_EQ(usage.prompt_tokens, planned.usage.prompt_tokens);
      EXPECT_GT(part_bytes(planned, "projector"), 0);
      EXPECT_THAT(planned.usage.notes, Contains(HasSubstr("not bounded")));
    }
  }
}

TEST(MtmdRequest, BoundsAreKeptOrRefused) {
  const MtmdPair pair = llava_pair();
  const Request request = pair.ask({{1500, 1000}});
  const Plan free = plan(pair.options(), request);
  EngineOptions options = pair.options();
  options.encoder_memory = part_bytes(free, "encoder");
  EXPECT_NO_THROW(Engine::open(options).run(request));
  options.encoder_memory -= 1;
  expect_error([&] { Engine::open(options).run(request); }, ErrorCode::kResourceExhausted,
               {"vision encoder", "--encoder-memory", "1500 x 1000"});
  if (!kMemoryIsOurs) return;  // the sanitizer's
  const Request large = pair.ask({{5000, 4000}});
  expect_error([&] { plan(pair.options(), large, int64_t{4} << 20); },
               ErrorCode::kResourceExhausted, {"--memory", "encoder", "a smaller picture"});
}

TEST(MtmdRequest, OptionsThatItCannotKeepAreRefused) {
  const MtmdPair pair = smolvlm_pair();
  const auto refuse = [&](const std::function<void(Request&)>& change,
                          const std::vector<std::string>& parts) {
    Request request = pair.ask({{200, 150}});
    change(request);
    expect_error([&] { run(pair, request); }, ErrorCode::kInvalidArgument, parts);
  };
  refuse([](Request& r) { r.image.max_tiles = 4; }, {"--max-tiles", "idefics3"});
  refuse([](Request& r) { r.image.min_tokens = 4; }, {"--image-min-tokens", "idefics3"});
  refuse([](Request& r) { r.image.max_tokens = 4; }, {"--image-max-tokens", "at least 52"});
  refuse([](Request& r) { r.image.max_visual_tokens = 4; }, {"--max-visual-tokens", "at least 52"});
  refuse(
      [](Request& r) {
        r.messages[0].content.emplace_back(VideoPart{"film.mp4", false});
      },
      {"--video", "idefics3", "film.mp4"});
  Request request = pair.ask({{200, 150}});
  request.image.max_tokens = 52;
  EXPECT_EQ(run(pair, request).usage.visual_tokens, 52);
}

TEST(MtmdRequest, PicturesOfOddShapesAreTakenOrRefused) {
  const MtmdPair llava = llava_pair(), smolvlm = smolvlm_pair();
  const auto native = smolvlm_pair({.longest_edge = 0});
  for (const auto& size : {std::pair(1, 1), {1, 100}, {100, 1}, {3000, 30}}) {
    for (const MtmdPair* pair : {&llava, &smolvlm, &native}) {
      EXPECT_GT(run(*pair, pair->ask({size})).usage.visual_tokens, 0);
    }
  }
  EXPECT_GT(run(llava, llava.ask({{20000, 1}})).usage.visual_tokens, 0);
  expect_error(
      [&] {
        run(smolvlm, smolvlm.ask({{1, 1000}}));
      },
      ErrorCode::kInvalidArgument, {"112 times", "1 x 1000"});
  expect_error(
      [&] {
        run(llava, llava.ask({{46001, 1}}));
      },
      ErrorCode::kResourceExhausted, {"46000", "46001 x 1"});
}

TEST(MtmdRequest, FilesThatDoNotBelongTogetherAreRefused) {
  const auto open = [](const MtmdPair& pair) { Engine::open(pair.options()); };
  expect_error(
      [&] {
        open({{.arch = "qwen2vl"}, TinyLlava{}});
      },
      ErrorCode::kUnsupported, {"mlp", "M-RoPE", "belong together"});
  expect_error([&] { open(llava_pair({.projection_dim = 96})); }, ErrorCode::kUnsupported,
               {"width 64", "96", "belong together"});
  // A text model without the projector's markers.
  const MtmdPair pair({.arch = "llama"}, TinyIdefics3{});
  expect_error(
      [&] {
        run(pair, pair.ask({{200, 150}}));
      },
      ErrorCode::kUnsupported, {"markers of idefics3", "vocabulary"});
}

TEST(MtmdRequest, EmbeddingsAreHeldBetweenRequests) {
  const MtmdPair pair = smolvlm_pair();
  EngineOptions options = pair.options();
  options.embedding_cache_bytes = int64_t{1} << 20;
  Engine engine = Engine::open(options);
  const Request request = pair.ask({{200, 150}, {90, 80}});
  const Answer first = engine.run(request);
  EXPECT_GT(first.usage.encoded_tiles, 0);
  const Answer second = engine.run(request);
  EXPECT_EQ(second.usage.encoded_tiles, 0);
  EXPECT_EQ(second.text, first.text);
}

TEST(MtmdRequest, ABudgetKeepsTheFrameOfAPicture) {
  const MtmdPair pair = smolvlm_pair();
  Request request = pair.ask({{200, 150}});
  request.kv.budget = 48;
  request.kv.block = 16;
  const Usage usage = run(pair, request).usage;
  EXPECT_LE(usage.kv_kept_max, 48);
  EXPECT_GT(usage.evicted_tokens, 0);
}

// Within a picture: the poll is asked between layers, and the engine is usable afterwards.
TEST(MtmdRequest, IsCancelledWithinAPicture) {
  const MtmdPair pair = llava_pair({.n_layer = 12});
  Engine engine = Engine::open(pair.options());
  const Request request = pair.ask({{100, 100}});
  const std::string answer = engine.run(request).text;
  RequestCallbacks callbacks;
  int polls = 0;
  callbacks.should_cancel = [&] { return ++polls == 5; };
  expect_error([&] { engine.run(request, callbacks); }, ErrorCode::kCancelled, {"interrupted"});
  EXPECT_EQ(polls, 5);
  EXPECT_EQ(engine.run(request).text, answer);
}

}  // namespace
}  // namespace plateau::test

// Pictures of native size through the whole engine: sizes, caps, the encoder's memory bound.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "media/fixtures.h"
#include "plateau/engine.h"
#include "plateau/plan.h"
#include "support/expect_error.h"
#include "support/memory_figures.h"
#include "support/synth.h"
#include "support/temp_dir.h"
#include "vision/encode_plan.h"

namespace plateau::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class PictureRequest : public testing::Test {
 protected:
  PictureRequest() {
    write_tiny_text({.arch = "qwen2vl"}, text_);
    write_tiny_qwen_vision({}, mmproj_);
  }

  static EngineOptions options_of(const std::string& text, const std::string& mmproj) {
    EngineOptions options;
    options.model_path = text;
    options.mmproj_path = mmproj;
    options.n_threads = 1;
    return options;
  }

  std::string picture(int width, int height) {
    const std::string path =
        dir_.file(std::to_string(width) + "x" + std::to_string(height) + ".png");
    media::testing::write_png(media::testing::noise(width, height), path);
    return path;
  }

  Answer ask(const std::vector<std::string>& pictures, const ImageOptions& options = {},
             int64_t encoder_memory = 0) {
    EngineOptions engine_options = options_of(text_, mmproj_);
    engine_options.encoder_memory = encoder_memory;
    Engine engine = Engine::open(engine_options);
    Request request;
    request.image = options;
    request.max_new_tokens = 4;
    Message& message = request.messages.emplace_back(Message{"user", {}});
    for (const std::string& path : pictures) message.content.emplace_back(ImagePart{path});
    message.content.emplace_back(TextPart{"What is on the moon?"});
    return engine.run(request);
  }

  TempDir dir_;
  std::string text_ = dir_.file("text.gguf"), mmproj_ = dir_.file("mmproj.gguf");
};

TEST_F(PictureRequest, EverySizeIsSeenAtItsRoundedSize) {
  const struct {
    int width, height, rows, cols;
  } sizes[] = {{1, 1, 2, 2}, {27, 257, 9, 1}, {5000, 1, 1, 179}, {300, 200, 7, 11}, {56, 84, 3, 2}};
  for (const auto& size : sizes) {
    const Answer answer = ask({picture(size.width, size.height)});
    SCOPED_TRACE(testing::Message() << size.width << " x " << size.height);
    ASSERT_EQ(answer.usage.images.size(), 1U);
    const ImageReport& image = answer.usage.images[0];
    EXPECT_EQ(image.n_rows, size.rows);
    EXPECT_EQ(image.n_cols, size.cols);
    EXPECT_EQ(image.used_width, 28 * size.cols);
    EXPECT_EQ(image.used_height, 28 * size.rows);
    EXPECT_EQ(image.n_bands, 1);
    EXPECT_EQ(image.tokens_made, size.rows * size.cols);
    EXPECT_EQ(image.tokens_kept, image.tokens_made);
    EXPECT_EQ(answer.usage.visual_tokens, image.tokens_made);
    EXPECT_GT(answer.usage.encoder_bytes, 0);
    const bool resized = size.width % 28 != 0 || size.height % 28 != 0;
    EXPECT_EQ(resized, testing::Matches(Contains(HasSubstr("resized")))(answer.usage.notes));
    EXPECT_EQ(size.width == 5000,
              testing::Matches(Contains(HasSubstr("longer than 200 times")))(answer.usage.notes));
  }
}

TEST_F(PictureRequest, CapsHoldForEachAndForAll) {
  const std::vector<std::string> two = {picture(300, 200), picture(200, 300)};
  EXPECT_EQ(ask(two).usage.visual_tokens, 2 * 77);
  EXPECT_LE(ask(two, {.max_tokens = 20}).usage.visual_tokens, 40);
  EXPECT_LE(ask(two, {.max_visual_tokens = 30}).usage.visual_tokens, 30);
  EXPECT_GT(ask(two, {.max_visual_tokens = 30}).usage.visual_tokens, 15);
  EXPECT_GE(ask({two[0]}, {.min_tokens = 100}).usage.visual_tokens, 100);
  EXPECT_EQ(ask(two, {.max_visual_tokens = 2}).usage.visual_tokens, 2);
  expect_error([&] { ask(two, {.max_visual_tokens = 1}); }, ErrorCode::kInvalidArgument,
               {"--max-visual-tokens", "at least 2"});
  expect_error([&] { ask(two, {.min_tokens = 9, .max_tokens = 8}); }, ErrorCode::kInvalidArgument,
               {"--image-max-tokens", "8"});
  expect_error([&] { ask(two, {.max_tiles = 4}); }, ErrorCode::kInvalidArgument,
               {"--max-tiles", "--image-max-tokens"});
  expect_error([&] { ask(two, {.min_tokens = int64_t{1} << 60}); }, ErrorCode::kInvalidArgument,
               {"--image-min-tokens"});
}

TEST_F(PictureRequest, ABoundOnTheEncoderCutsAndSaysSo) {
  const std::string path = picture(28 * 21, 28 * 30);
  const Answer whole = ask({path});
  EXPECT_THAT(whole.usage.notes, testing::Not(Contains(HasSubstr("bands"))));
  const model::VisionConfig config = model::read_vision_config(model::GgufFile::open(mmproj_));
  const int64_t bound = vision::encoder_scratch_bytes(config, 30, 21, {.group = 128}) - 1;
  const Answer cut = ask({path}, {}, bound);
  EXPECT_EQ(cut.usage.images[0].n_bands, 2);
  EXPECT_EQ(cut.usage.visual_tokens, whole.usage.visual_tokens);
  EXPECT_EQ(cut.usage.images[0].tokens_kept, 30 * 21);
  EXPECT_LE(cut.usage.encoder_bytes, bound);
  EXPECT_THAT(cut.usage.notes, Contains(HasSubstr("2 bands")));
  expect_error([&] { ask({path}, {}, 1000); }, ErrorCode::kResourceExhausted,
               {"vision encoder", "bytes", "--encoder-memory", "--image-max-tokens"});
  expect_error([&] { ask({path}, {}, -1); }, ErrorCode::kInvalidArgument, {"--encoder-memory"});
}

// The plan counts the encoder, and a bound on everything reaches it.
TEST_F(PictureRequest, AMemoryBoundReachesTheEncoder) {
  if (!kMemoryIsOurs) GTEST_SKIP() << "memory is the sanitizer's";
  Request request;
  request.max_new_tokens = 2;
  request.kv.block = 64;  // named, so that they stay
  request.kv.budget = 300;
  request.messages = {{"user", {ImagePart{picture(28 * 20, 28 * 40)}, TextPart{"Hi"}}}};
  const EngineOptions options = options_of(text_, mmproj_);
  const auto encoder_bytes = [](const Plan& plan) {
    for (const MemoryPart& part : plan.memory) {
      if (part.name == "encoder") return part.bytes;
    }
    return int64_t{0};
  };
  const Plan whole = plan(options, request);
  EXPECT_TRUE(whole.concessions.empty());
  EXPECT_EQ(whole.usage.images[0].n_bands, 1);
  const int64_t bound = total_bytes(whole.memory) - encoder_bytes(whole) * 2 / 3;
  const Plan cut = plan(options, request, bound);
  EXPECT_LE(total_bytes(cut.memory), bound);
  EXPECT_GT(cut.usage.images[0].n_bands, 1);
  EXPECT_THAT(cut.concessions, Contains(HasSubstr("for the vision encoder")));
  EXPECT_THAT(cut.usage.notes, Contains(HasSubstr("bands")));
  const Usage ran = Engine::open(cut.engine).run(cut.request).usage;
  EXPECT_LE(ran.encoder_bytes, encoder_bytes(cut));
  EXPECT_EQ(ran.images[0].n_bands, cut.usage.images[0].n_bands);
}

TEST_F(PictureRequest, ProgressIsSeenWithinAPicture) {
  Engine engine = Engine::open(options_of(text_, mmproj_));
  Request request;
  request.max_new_tokens = 1;
  request.messages = {{"user", {ImagePart{picture(420, 420)}, TextPart{"Hi"}}}};
  std::vector<double> shares;
  RequestCallbacks callbacks;
  callbacks.on_progress = [&](const Progress& progress) {
    if (progress.tokens_done == 0) shares.push_back(progress.encoded_share);
  };
  engine.run(request, callbacks);
  EXPECT_GT(shares.size(), 4U);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
}

TEST_F(PictureRequest, FilesOfTwoFamiliesAreRefused) {
  const std::string internvl = dir_.file("internvl.gguf"), qwen3 = dir_.file("qwen3.gguf");
  write_tiny_vision({}, internvl);
  write_tiny_text({}, qwen3);
  for (const auto& [text, mmproj] : {std::pair(text_, internvl), {qwen3, mmproj_}}) {
    expect_error([&] { Engine::open(options_of(text, mmproj)); }, ErrorCode::kUnsupported,
                 {text, mmproj, "belong together"});
  }
}

TEST_F(PictureRequest, ATiledFamilyHasItsOwnOptions) {
  text_ = dir_.file("qwen3.gguf");
  mmproj_ = dir_.file("internvl.gguf");
  write_tiny_text({}, text_);
  write_tiny_vision({}, mmproj_);
  const std::string path = picture(400, 300);
  expect_error([&] { ask({path}, {.min_tokens = 8}); }, ErrorCode::kInvalidArgument,
               {"--image-min-tokens", "--max-tiles"});
  EXPECT_LE(ask({path}, {.max_tokens = 12}).usage.visual_tokens, 12);
  expect_error([&] { ask({path}, {.max_tokens = 3}); }, ErrorCode::kInvalidArgument,
               {"--image-max-tokens", "at least 4"});
  const Answer bounded = ask({path}, {}, int64_t{4} << 20);
  EXPECT_LE(bounded.usage.encoder_bytes, int64_t{4} << 20);
  expect_error([&] { ask({path}, {}, 1000); }, ErrorCode::kResourceExhausted,
               {"vision encoder", "one tile", "--encoder-memory"});
}

}  // namespace
}  // namespace plateau::test

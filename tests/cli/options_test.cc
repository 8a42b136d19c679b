// Options that must not, or must, change the answer.
#include <gmock/gmock.h>

#include "cli/plateau_process.h"

namespace plateau::cli::testing {
namespace {

using ::testing::HasSubstr;

TEST(Block, SizeDoesNotChangeTheAnswer) {
  const TempDir dir;
  const Needle needle = make_needle(dir);
  for (const char* block : {"1", "7", "64", "1024"}) {
    const auto stats = stats_of({"--image", needle.path, "-p", needle.question, "--block", block});
    EXPECT_EQ(stats["answer"], needle.answer) << block;
    EXPECT_EQ(stats["visual_tokens"], 132) << block;
    EXPECT_GE(stats["blocks"].get<int>() * std::stoi(block), stats["prompt_tokens"]) << block;
  }
}

TEST(EncoderBatch, SizeDoesNotChangeTheAnswer) {
  const TempDir dir;
  const Needle needle = make_needle(dir);
  for (const char* batch : {"1", "3", "64"}) {
    const auto stats =
        stats_of({"--image", needle.path, "-p", needle.question, "--encoder-batch", batch});
    EXPECT_EQ(stats["answer"], needle.answer) << batch;
  }
}

TEST(CacheType, QuantizedCacheIsSmaller) {
  const TempDir dir;
  const Needle needle = make_needle(dir);
  const auto f16 = stats_of({"--image", needle.path, "-p", needle.question});
  const auto q8 =
      stats_of({"--image", needle.path, "-p", needle.question, "-ctk", "q8_0", "-ctv", "q8_0"});
  EXPECT_EQ(q8["answer"], needle.answer);
  EXPECT_EQ(q8["kv_bytes"].get<int>() * 32, f16["kv_bytes"].get<int>() * 17);  // 34 bytes for 32
}

TEST(MaxTiles, TheResizeIsToldOnStandardErrorAndInTheStats) {
  const TempDir dir;
  const Needle needle = make_needle(dir);
  const std::string stats_path = dir.file("stats.json");
  const Finished finished = plateau(pico_run({"--image", needle.path, "-p", needle.question,
                                              "--max-tiles", "2", "--stats-json", stats_path}));
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("resized from 896x448 to 224x112"));
  const auto stats = nlohmann::json::parse(media::testing::read_file(stats_path));
  EXPECT_EQ(stats["images"][0]["original_width"], 896);
  EXPECT_EQ(stats["images"][0]["used_width"], 224);
  EXPECT_EQ(stats["images"][0]["used_height"], 112);
  EXPECT_EQ(stats["images"][0]["tiles"], 3);  // with the thumbnail
  EXPECT_EQ(stats["visual_tokens"], 12);
}

TEST(Thumbnail, CanBeLeftOut) {
  const TempDir dir;
  const Needle needle = make_needle(dir, 448, 224);
  EXPECT_EQ(stats_of({"--image", needle.path, "-n", "1"})["visual_tokens"], 36);
  EXPECT_EQ(stats_of({"--image", needle.path, "-n", "1", "--no-thumbnail"})["visual_tokens"], 32);
}

TEST(Seed, SameSeedSameRandomAnswer) {
  const auto drawn = [](const char* seed) {
    return stats_of({"-p", "hello", "-n", "24", "--temp", "3", "--top-k", "0", "--top-p", "1",
                     "--min-p", "0", "--seed", seed})["answer"]
        .get<std::string>();
  };
  const std::string first = drawn("5");
  EXPECT_EQ(drawn("5"), first);
  EXPECT_TRUE(drawn("6") != first || drawn("7") != first);
}

TEST(Predict, StopsAtTheLimitAndSaysSo) {
  const auto stats = stats_of({"-p", "hello", "-n", "1"});
  EXPECT_EQ(stats["decode_tokens"], 1);
  EXPECT_EQ(stats["stop_reason"], "length");
}

TEST(Images, KeepTheirOrder) {
  const TempDir dir;
  using media::testing::noise;
  media::testing::write_png(noise(100, 50), dir.file("first.png"));
  media::testing::write_png(noise(50, 300), dir.file("second.png"));
  media::testing::write_png(noise(224, 224), dir.file("third.png"));
  const auto stats = stats_of({"--image", dir.file("second.png"), "--image", dir.file("third.png"),
                               "--image", dir.file("first.png"), "-p", "hi", "-n", "1"});
  ASSERT_EQ(stats["images"].size(), 3u);
  EXPECT_THAT(stats["images"][0]["path"], HasSubstr("second"));
  EXPECT_THAT(stats["images"][1]["path"], HasSubstr("third"));
  EXPECT_THAT(stats["images"][2]["path"], HasSubstr("first"));
  int made = 0;
  for (const auto& image : stats["images"]) {
    EXPECT_GT(image["tokens_made"], 0);
    made += image["tokens_made"].get<int>();
  }
  EXPECT_EQ(stats["visual_tokens"], made);
}

}  // namespace
}  // namespace plateau::cli::testing

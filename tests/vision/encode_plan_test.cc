#include "vision/encode_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plateau/error.h"

namespace plateau::vision {
namespace {

// The published shape.
model::VisionConfig published() {
  model::VisionConfig config;
  config.patch_size = 14;
  config.n_embd = 1280;
  config.n_layer = 32;
  config.n_head = 16;
  config.n_ff = 3420;
  config.n_embd_out = 3584;
  config.family = model::Qwen25VlVision{};
  return config;
}

int64_t bytes(int n_rows, int n_cols, int group) {
  return encoder_scratch_bytes(published(), n_rows, n_cols, {.group = group, .n_threads = 2});
}

TEST(EncodePlan, WithoutABoundAPictureIsEncodedWhole) {
  const EncodePlan plan = plan_encode(published(), 200, 300, 1, /*max_bytes=*/0, 2);
  EXPECT_EQ(plan.n_units, 1);
  EXPECT_EQ(plan.rows_per_unit, 200);
  EXPECT_EQ(plan.bytes, bytes(200, 300, plan.group));
}

TEST(EncodePlan, ASmallerGroupComesBeforeBands) {
  const EncodePlan whole = plan_encode(published(), 40, 40, 1, 0, 2);
  const EncodePlan tight = plan_encode(published(), 40, 40, 1, whole.bytes - 1, 2);
  EXPECT_EQ(tight.n_units, 1);
  EXPECT_LT(tight.group, whole.group);
  EXPECT_LT(tight.bytes, whole.bytes);
}

TEST(EncodePlan, BandsAreWholeWindowRowsThatFitAndCoverThePicture) {
  for (const int n_rows : {40, 41, 200, 333}) {
    for (const int64_t bound : {48 << 20, 64 << 20, 100 << 20, 200 << 20}) {
      const EncodePlan plan = plan_encode(published(), n_rows, 120, 1, bound, 2);
      SCOPED_TRACE(testing::Message() << n_rows << " rows in " << bound);
      EXPECT_LE(plan.bytes, bound);
      EXPECT_EQ(plan.bytes, bytes(plan.rows_per_unit, 120, plan.group));
      EXPECT_GE(plan.n_units * plan.rows_per_unit, n_rows);
      EXPECT_LT((plan.n_units - 1) * plan.rows_per_unit, n_rows);
      if (plan.n_units == 1) continue;
      EXPECT_EQ(plan.rows_per_unit % 4, 0);
      // One band fewer would not fit, whatever the group.
      const int n_window_rows = (n_rows + 3) / 4;
      const int fewer = plan.n_units - 1;
      const int taller = (n_window_rows + fewer - 1) / fewer * 4;
      EXPECT_GT(bytes(std::min(n_rows, taller), 120, 128), bound);
    }
  }
}

TEST(EncodePlan, ABoundBelowOneRowOfWindowsIsRefusedWithTheWayOut) {
  const int64_t least = bytes(4, 2000, 128);
  EXPECT_NO_THROW(plan_encode(published(), 100, 2000, 1, least, 2));
  try {
    plan_encode(published(), 100, 2000, 1, least - 1, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
    for (const std::string& part : std::vector<std::string>{
             "vision encoder", std::to_string(least), "--encoder-memory", "--image-max-tokens"}) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

TEST(EncodePlan, AFourKPictureNeedsHalfAGibibyte) {
  // 3840 x 2160: 77 x 137 tokens, 42 196 patches.
  EXPECT_LT(plan_encode(published(), 77, 137, 1, 0, 2).bytes, int64_t{512} << 20);
  // A 50-megapixel one, 223 x 289 tokens, within one.
  const EncodePlan plan = plan_encode(published(), 223, 289, 1, int64_t{1} << 30, 2);
  EXPECT_LE(plan.bytes, int64_t{1} << 30);
  EXPECT_EQ(plan.n_units, 3);
}

}  // namespace
}  // namespace plateau::vision

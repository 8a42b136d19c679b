// The arithmetic of what libmtmd holds, and of which pictures it can take. What is really held is
// compared with it in tests/engine/mtmd_request_test.cc.
#include "vision/mtmd_plan.h"

#include <gtest/gtest.h>

#include "plateau/error.h"

namespace plateau::vision {
namespace {

model::VisionConfig idefics3(int longest_edge) {
  model::VisionConfig config;
  config.projector_type = "idefics3";
  config.patch_size = 14;
  config.n_embd = 64;
  config.n_head = 4;
  config.n_ff = 128;
  config.n_embd_out = 96;
  config.family = model::MtmdVision{.chunk_size = 56, .merge = 2, .longest_edge = longest_edge};
  return config;
}

ErrorCode code_for(const model::VisionConfig& config, PictureSize size) {
  try {
    require_mtmd_size(config, size);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;  // taken
}

TEST(MtmdPlan, SidesPixelsAndShapesAreBounded) {
  const model::VisionConfig sized = idefics3(224), native = idefics3(0);
  EXPECT_EQ(code_for(sized, {1, 1}), ErrorCode::kInternal);
  EXPECT_EQ(code_for(sized, {20'000, 20'000}), ErrorCode::kInternal);
  EXPECT_EQ(code_for(sized, {30'000, 30'000}), ErrorCode::kResourceExhausted);
  EXPECT_EQ(code_for(native, {46'000, 1}), ErrorCode::kInternal);
  EXPECT_EQ(code_for(native, {46'001, 1}), ErrorCode::kResourceExhausted);
  EXPECT_EQ(code_for(native, {8000, 8000}), ErrorCode::kResourceExhausted);  // chunks
  // 224 / 112 leaves two pixels of the shorter side.
  EXPECT_EQ(code_for(sized, {112, 1}), ErrorCode::kInternal);
  EXPECT_EQ(code_for(sized, {1, 113}), ErrorCode::kInvalidArgument);
}

TEST(MtmdPlan, EachPartGrowsWithWhatItHolds) {
  const model::VisionConfig config = idefics3(224);
  const PictureSize small = {100, 100}, large = {1000, 1000};
  // The picture twice; a chunk's pixels in f32.
  EXPECT_GE(mtmd_cut_bytes(config, large, 17) - mtmd_cut_bytes(config, small, 17),
            6 * (1'000'000 - 10'000));
  EXPECT_EQ(mtmd_chunk_bytes(config, 18) - mtmd_chunk_bytes(config, 17), 12 * 56 * 56);
  EXPECT_GT(mtmd_work_bytes(config, 8), 0);
}

}  // namespace
}  // namespace plateau::vision

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "media/fixtures.h"
#include "media/frame_sampling.h"

namespace plateau::media {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

TEST(PlanFrames, OneFrameASecondBeforeTheEnd) {
  const FramePlan plan = plan_frames(10.0, {.fps = 1});
  EXPECT_EQ(plan.n_frames, 10);
  for (int i = 0; i < 10; ++i) EXPECT_DOUBLE_EQ(plan.timestamp_s(i), i);
  EXPECT_EQ(plan.note, "");
  EXPECT_EQ(plan_frames(10.04, {.fps = 1}).n_frames, 11);
  EXPECT_EQ(plan_frames(9.96, {.fps = 1}).n_frames, 10);
}

TEST(PlanFrames, NeverAFrameAtOrAfterTheEnd) {
  for (double duration_s = 0.01; duration_s < 20; duration_s += 0.37) {
    for (const double fps : {0.1, 0.5, 1.0, 2.0, 29.97}) {
      for (const int max_frames : {0, 1, 2, 7}) {
        const FramePlan plan = plan_frames(duration_s, {.fps = fps, .max_frames = max_frames});
        ASSERT_GE(plan.n_frames, 1);
        EXPECT_GE(plan.timestamp_s(0), 0);
        EXPECT_LT(plan.timestamp_s(plan.n_frames - 1), duration_s);
        EXPECT_GE(plan.timestamp_s(plan.n_frames - 1) + plan.step_s, duration_s - 1e-3);
        if (max_frames > 0) {
          EXPECT_LE(plan.n_frames, max_frames);
        }
      }
    }
  }
}

TEST(PlanFrames, RoundedDurationsYieldNoFrameMore) {
  // 300 frames of a 29.97 Hz film.
  const double duration_s = 300 * 1001 / 30000.0;
  EXPECT_EQ(plan_frames(duration_s, {.fps = 30000 / 1001.0}).n_frames, 300);
  EXPECT_EQ(plan_frames(10.0000001, {.fps = 1}).n_frames, 10);
}

TEST(PlanFrames, ACapTakesTheMiddleOfEqualSegments) {
  const FramePlan plan = plan_frames(36000.0, {.fps = 1, .max_frames = 4});
  EXPECT_EQ(plan.n_frames, 4);
  EXPECT_DOUBLE_EQ(plan.timestamp_s(0), 4500);
  EXPECT_DOUBLE_EQ(plan.timestamp_s(3), 31500);
  EXPECT_THAT(plan.note, HasSubstr("36000 frames at 1 per second"));
  EXPECT_THAT(plan.note, HasSubstr("one frame for every 9000.000 s"));
  EXPECT_DOUBLE_EQ(plan_frames(100, {.fps = 1, .max_frames = 1}).timestamp_s(0), 50);
  EXPECT_EQ(plan_frames(4.0, {.fps = 1, .max_frames = 4}).note, "");
}

TEST(PlanFrames, APartOfTheFilm) {
  const FramePlan plan = plan_frames(100, {.fps = 2, .start_s = 10, .end_s = 12});
  EXPECT_EQ(plan.n_frames, 4);
  EXPECT_DOUBLE_EQ(plan.timestamp_s(0), 10);
  EXPECT_DOUBLE_EQ(plan.timestamp_s(3), 11.5);
  const FramePlan late = plan_frames(100, {.fps = 1, .start_s = 98, .end_s = 200});
  EXPECT_EQ(late.n_frames, 2);
  EXPECT_THAT(late.note, HasSubstr("ends at 100.000 s, before the 200 s"));
  const FramePlan capped =
      plan_frames(100, {.fps = 1, .max_frames = 2, .start_s = 20, .end_s = 60});
  EXPECT_DOUBLE_EQ(capped.timestamp_s(0), 30);
  EXPECT_DOUBLE_EQ(capped.timestamp_s(1), 50);
}

TEST(PlanFrames, AMomentIsOneFrame) {
  const FramePlan plan = plan_frames(0, {.fps = 1, .max_frames = 5});
  EXPECT_EQ(plan.n_frames, 1);
  EXPECT_EQ(plan.timestamp_s(0), 0);
}

TEST(PlanFrames, RefusesWhatCannotBePlanned) {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  for (const FrameSampling& sampling : {FrameSampling{.fps = 0},
                                        {.fps = -1},
                                        {.fps = nan},
                                        {.fps = inf},
                                        {.fps = 1001},
                                        {.max_frames = -1},
                                        {.start_s = -1},
                                        {.start_s = nan},
                                        {.start_s = inf},
                                        {.start_s = 5, .end_s = 5},
                                        {.start_s = 5, .end_s = 4},
                                        {.end_s = -1},
                                        {.end_s = nan},
                                        {.start_s = 10},
                                        {.start_s = 11}}) {
    const Error error = error_of([&] { plan_frames(10, sampling); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
  }
  EXPECT_THAT(error_of([] { plan_frames(10, {.start_s = 11}); }).what(),
              HasSubstr("which lasts 10.000 s"));
}

}  // namespace
}  // namespace plateau::media

// Tested by video_sampling_test.cc.
#include "media/frame_sampling.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace plateau::media {
namespace {

constexpr double kMaxFps = 1000.0;
// A duration that is a rounded number of frames must not yield one frame more.
constexpr double kRounding = 1e-6;

void check(double duration_s, const FrameSampling& sampling) {
  if (!(sampling.fps > 0 && sampling.fps <= kMaxFps)) {
    throw_error(ErrorCode::kInvalidArgument,
                "[video] expected a rate above 0 and up to {} frames per second, got {}", kMaxFps,
                sampling.fps);
  }
  if (sampling.max_frames < 0) {
    throw_error(ErrorCode::kInvalidArgument,
                "[video] expected a cap of 1 or more frames, or 0 for none, got {}",
                sampling.max_frames);
  }
  if (!(sampling.start_s >= 0 && std::isfinite(sampling.start_s)) ||
      !(sampling.end_s >= 0 && std::isfinite(sampling.end_s)) ||
      (sampling.end_s > 0 && sampling.end_s <= sampling.start_s)) {
    throw_error(ErrorCode::kInvalidArgument,
                "[video] expected a part that ends after it starts, got {} to {} s",
                sampling.start_s, sampling.end_s);
  }
  if (sampling.start_s > 0 && sampling.start_s >= duration_s) {
    throw_error(ErrorCode::kInvalidArgument,
                "[video] expected a start within the film, which lasts {:.3f} s, got {} s; try an "
                "earlier one",
                duration_s, sampling.start_s);
  }
}

}  // namespace

FramePlan plan_frames(double duration_s, const FrameSampling& sampling) {
  PLATEAU_CHECK(std::isfinite(duration_s) && duration_s >= 0);
  check(duration_s, sampling);
  FramePlan plan;
  plan.start_s = sampling.start_s;
  plan.end_s = sampling.end_s > 0 ? std::min(sampling.end_s, duration_s) : duration_s;
  const double length_s = plan.end_s - plan.start_s;
  plan.n_frames =
      std::max<int64_t>(1, static_cast<int64_t>(std::ceil(length_s * sampling.fps - kRounding)));
  plan.first_s = plan.start_s;
  plan.step_s = 1.0 / sampling.fps;
  if (sampling.max_frames > 0 && plan.n_frames > sampling.max_frames) {
    plan.note = fmt::format(
        "{} frames at {:g} per second are more than {}: one frame for every {:.3f} s, spread "
        "evenly "
        "over {:.1f} to {:.1f} s",
        plan.n_frames, sampling.fps, sampling.max_frames, length_s / sampling.max_frames,
        plan.start_s, plan.end_s);
    plan.n_frames = sampling.max_frames;
    plan.step_s = length_s / sampling.max_frames;
    plan.first_s = plan.start_s + plan.step_s / 2;
  } else if (sampling.end_s > duration_s) {
    plan.note = fmt::format("the film ends at {:.3f} s, before the {:g} s that were asked for",
                            duration_s, sampling.end_s);
  }
  return plan;
}

}  // namespace plateau::media

// Which moments of a film are looked at. Pure arithmetic: a plan is an arithmetic sequence, so it
// costs the same for a minute and for ten hours.
#pragma once

#include <cstdint>
#include <string>

namespace plateau::media {

struct FrameSampling {
  double fps = 1.0;    // frames per second of the film
  int max_frames = 0;  // where fps asks for more, this many are spread evenly; 0: no cap
  double start_s = 0;  // the part of the film that is looked at: from here
  double end_s = 0;    // up to here, exclusive; 0: to the end of the film
};

/// Times in seconds since the film's first frame.
struct FramePlan {
  int64_t n_frames = 0;
  double first_s = 0;
  double step_s = 0;  // between two frames; 1 / fps unless max_frames lowered it
  double start_s = 0;
  double end_s = 0;
  std::string note = {};  // what differs from what was asked for, in a sentence; empty: nothing

  /// When the i-th frame is due.
  double timestamp_s(int64_t i) const { return first_s + static_cast<double>(i) * step_s; }
};

/// Frames at start, start + 1 / fps, ... while before the end; at least one. Where these are more
/// than max_frames, the part is cut into max_frames equal segments and the middle of each is taken.
/// `duration_s` is VideoInfo::duration_s; 0 is a film of a single moment.
/// Errors: kInvalidArgument for a rate that is not in (0, 1000], a negative cap, a part that is
/// empty or begins after the end of the film.
FramePlan plan_frames(double duration_s, const FrameSampling& sampling);

}  // namespace plateau::media

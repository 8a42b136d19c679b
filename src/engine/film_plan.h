// What a film of a request becomes: which frames, at which size, as which units of the prompt.
// Tested by tests/engine/film_test.cc.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/visual_layout.h"
#include "media/frame_list.h"
#include "media/frame_sampling.h"
#include "media/image.h"
#include "media/video.h"
#include "model/vision_config.h"
#include "plateau/request.h"

namespace plateau::engine {

/// Temporal positions in a second of film: Qwen2.5-VL's published configuration
/// (arXiv:2502.13923; `tokens_per_second`), which its GGUF files do not carry.
inline constexpr double kTokensPerSecond = 2.0;

/// A film, or pictures that stand for one.
struct FilmPlan {
  media::VideoInfo info;    // of a list: the first picture's size, and no memory
  media::FramePlan frames;  // of a list: n_frames, start_s and end_s only
  double fps = 0;           // as asked for
  double length_s = 0;      // of the whole film; a list's last picture stands for 1 / fps
  bool is_list = false;
  std::vector<media::ListedFrame> listed;
  media::ImageInfo largest;  // of a list: what is largest in any of its pictures
  int frames_per_slice = 1;  // frames that are encoded together; the last may stand twice
  std::vector<std::string> notes = {};

  int n_slices() const;
  /// When a frame is due, in seconds of the film.
  double frame_s(int64_t frame) const;
  /// Whether [start_s, end_s) has a moment of the film, looked at or not.
  bool shows(double start_s, double end_s) const;
  /// The slices, half open, with a frame that is due in [start_s, end_s).
  std::pair<int, int> slices_within(double start_s, double end_s) const;
  /// Seconds from the first frame to the first one of a slice.
  double slice_s(int slice) const;
};

/// What probe_video() says, so that a request that is planned many times opens its films once.
class FilmProbes {
 public:
  /// Errors: as media::probe_video().
  const media::VideoInfo& probe(const std::string& path);

 private:
  std::map<std::string, media::VideoInfo> known_;  // by path, size and time of the last change
};

/// Opens the film; of a list, reads the pictures' headers. At most `max_frames` (0: no cap) and
/// what the options allow. Errors: those of media::probe_video, plan_frames, list_frames and
/// probe_image.
FilmPlan plan_film(const VideoPart& part, const VideoOptions& options,
                   const media::ImageLimits& limits, int64_t max_frames, int frames_per_slice,
                   FilmProbes& probes);

/// Errors: kInvalidArgument naming the option. What depends on the film is left to plan_film().
void check_video_options(const VideoOptions& options);

/// Slices of `slice`, one after the other. Qwen2.5-VL: t in steps of 1 / kTokensPerSecond seconds,
/// rounded down.
VisualLayout timed_layout(const FilmPlan& film, const VisualLayout& slice);
/// InternVL: "Frame1: " before the first frame, and so on, each in markers of its own.
VisualLayout numbered_layout(const FilmPlan& film, const VisualLayout& slice);

VideoReport video_report(const FilmPlan& film);

}  // namespace plateau::engine

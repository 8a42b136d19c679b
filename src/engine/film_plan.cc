#include "engine/film_plan.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/check.h"

namespace plateau::engine {
namespace {

constexpr size_t kMaxProbes = 64;
constexpr double kMaxFps = 1000;
// A moment that is a rounded number of temporal positions must not fall to the one before.
constexpr double kRounding = 1e-6;
// Seconds by which media::VideoReader tells frames apart.
constexpr double kSameMoment = 0.5e-3;

/// Units and slices are counted in int.
constexpr int64_t kMaxFrames = INT32_MAX / 4;

media::FrameSampling sampling_of(const VideoOptions& options, int64_t max_frames) {
  const int64_t given = options.max_frames;
  const int64_t least =
      given > 0 && max_frames > 0 ? std::min(given, max_frames) : std::max(given, max_frames);
  return {.fps = options.fps,
          .max_frames = static_cast<int>(std::min<int64_t>(least, kMaxFrames)),
          .start_s = options.start_s,
          .end_s = options.end_s};
}

void plan_list(const VideoPart& part, const media::FrameSampling& sampling,
               const media::ImageLimits& limits, FilmPlan& film) {
  film.listed = media::list_frames(part.path, sampling.fps);
  const size_t n_listed = film.listed.size();
  film.length_s = film.listed.back().timestamp_s + 1 / sampling.fps;
  film.listed = media::pick_frames(std::move(film.listed), sampling);
  film.info.container = "list";
  int64_t n_resized = 0;
  for (const media::ListedFrame& frame : film.listed) {
    const media::ImageInfo info = media::probe_image(frame.path, limits);
    if (&frame == &film.listed.front()) {
      film.info.width = info.width;
      film.info.height = info.height;
      film.info.codec = info.format;
    }
    n_resized += info.width != film.info.width || info.height != film.info.height ? 1 : 0;
    film.largest.width = std::max(film.largest.width, info.width);
    film.largest.height = std::max(film.largest.height, info.height);
    film.largest.decoder_bytes = std::max(film.largest.decoder_bytes, info.decoder_bytes);
    film.largest.spooled = film.largest.spooled || info.spooled;
  }
  film.frames = {.n_frames = static_cast<int64_t>(film.listed.size()),
                 .first_s = film.listed.front().timestamp_s,
                 .start_s = film.listed.front().timestamp_s,
                 .end_s = film.listed.back().timestamp_s};
  film.info.duration_s = film.frames.end_s - film.frames.start_s;
  if (film.listed.size() < n_listed) {
    film.notes.push_back(
        fmt::format("{}: {} of {} pictures are used", part.path, film.listed.size(), n_listed));
  }
  if (n_resized > 0) {
    film.notes.push_back(
        fmt::format("{}: {} of {} pictures are not of the first one's size, {}x{}, and are "
                    "stretched to it",
                    part.path, n_resized, film.listed.size(), film.info.width, film.info.height));
  }
}

void plan_frames_of(const VideoPart& part, const media::FrameSampling& sampling, FilmProbes& probes,
                    FilmPlan& film) {
  film.info = probes.probe(part.path);
  film.length_s = film.info.duration_s;
  for (const std::string& note : film.info.notes) {
    film.notes.push_back(fmt::format("{}: {}", part.path, note));
  }
  film.frames = media::plan_frames(film.info.duration_s, sampling);
  if (!film.frames.note.empty()) {
    film.notes.push_back(fmt::format("{}: {}", part.path, film.frames.note));
  }
}

}  // namespace

int FilmPlan::n_slices() const {
  return static_cast<int>((frames.n_frames + frames_per_slice - 1) / frames_per_slice);
}

double FilmPlan::frame_s(int64_t frame) const {
  return is_list ? listed[static_cast<size_t>(frame)].timestamp_s : frames.timestamp_s(frame);
}

bool FilmPlan::shows(double start_s, double end_s) const {
  // A film of a single moment has that one.
  return start_s < std::max(length_s, kSameMoment) && end_s > 0;
}

std::pair<int, int> FilmPlan::slices_within(double start_s, double end_s) const {
  // Frames are due in rising order.
  const auto first_at = [&](double seconds) {
    int64_t low = 0;
    int64_t high = frames.n_frames;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (frame_s(middle) < seconds - kSameMoment) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  const int64_t first = first_at(start_s);
  const int64_t last = first_at(end_s);
  const int begin = static_cast<int>(first / frames_per_slice);
  if (last <= first) return {begin, begin};
  return {begin, static_cast<int>((last + frames_per_slice - 1) / frames_per_slice)};
}

double FilmPlan::slice_s(int slice) const {
  const int64_t frame = int64_t{slice} * frames_per_slice;
  if (!is_list) return static_cast<double>(frame) * frames.step_s;
  return listed[static_cast<size_t>(frame)].timestamp_s - listed.front().timestamp_s;
}

const media::VideoInfo& FilmProbes::probe(const std::string& path) {
  std::error_code ec;
  const auto size = std::filesystem::file_size(path, ec);
  const auto time = std::filesystem::last_write_time(path, ec).time_since_epoch().count();
  const std::string key = fmt::format("{}|{}|{}", path, size, time);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  media::VideoInfo info = media::probe_video(path, {});
  if (known_.size() >= kMaxProbes) known_.clear();
  return known_[key] = std::move(info);
}

void check_video_options(const VideoOptions& options) {
  const auto require = [](bool condition, const char* option, const char* expected, auto got) {
    if (!condition) {
      throw_error(ErrorCode::kInvalidArgument, "[{}] expected {}, got {}", option, expected, got);
    }
  };
  // Written so that NaN fails.
  require(options.fps > 0 && options.fps <= kMaxFps, "--fps", "more than 0, up to 1000 frames",
          options.fps);
  require(options.max_frames >= 0, "--max-frames", "0 or more frames", options.max_frames);
  require(options.max_tokens >= 0, "--max-video-tokens", "0 or more tokens", options.max_tokens);
  require(options.max_frame_tokens >= 0, "--max-frame-tokens", "0 or more tokens",
          options.max_frame_tokens);
  require(options.start_s >= 0 && std::isfinite(options.start_s), "--video-start",
          "0 or more seconds", options.start_s);
  require(options.end_s == 0 || (options.end_s > options.start_s && std::isfinite(options.end_s)),
          "--video-end", "0, or more than --video-start", options.end_s);
}

FilmPlan plan_film(const VideoPart& part, const VideoOptions& options,
                   const media::ImageLimits& limits, int64_t max_frames, int frames_per_slice,
                   FilmProbes& probes) {
  const media::FrameSampling sampling = sampling_of(options, max_frames);
  FilmPlan film;
  film.fps = options.fps;
  film.is_list = part.is_frame_list;
  film.frames_per_slice = frames_per_slice;
  if (film.is_list) {
    plan_list(part, sampling, limits, film);
  } else {
    plan_frames_of(part, sampling, probes, film);
  }
  if (film.frames.n_frames > kMaxFrames) {
    throw_error(ErrorCode::kInvalidArgument,
                "[--fps] expected at most {} frames of a film, got {} of '{}'; try --max-frames",
                kMaxFrames, film.frames.n_frames, part.path);
  }
  if (film.frames.n_frames % frames_per_slice != 0) {
    film.notes.push_back(
        fmt::format("{}: {} encoded in groups of {}: the last one is repeated", part.path,
                    film.frames.n_frames == 1 ? "1 frame is"
                                              : fmt::format("{} frames are", film.frames.n_frames),
                    frames_per_slice));
  }
  return film;
}

VisualLayout timed_layout(const FilmPlan& film, const VisualLayout& slice) {
  VisualLayout layout = slice;
  const int n_slices = film.n_slices();
  layout.slice_t.reserve(static_cast<size_t>(n_slices));
  for (int i = 0; i < n_slices; ++i) {
    layout.slice_t.push_back(static_cast<int32_t>(
        std::min(std::floor(film.slice_s(i) * kTokensPerSecond + kRounding), 1e9)));
  }
  return layout;
}

VisualLayout numbered_layout(const FilmPlan& film, const VisualLayout& slice) {
  PLATEAU_CHECK(slice.units.size() == 1);
  VisualLayout layout = slice;
  const int n_slices = film.n_slices();
  layout.slice_labels.reserve(static_cast<size_t>(n_slices));
  for (int i = 0; i < n_slices; ++i) {
    layout.slice_labels.push_back(fmt::format("{}Frame{}: ", i == 0 ? "" : "\n", i + 1));
  }
  return layout;
}

VideoReport video_report(const FilmPlan& film) {
  VideoReport report;
  report.container = film.info.container;
  report.codec = film.info.codec;
  report.duration_s = film.info.duration_s;
  report.start_s = film.frames.start_s;
  report.end_s = film.frames.end_s;
  report.n_frames = film.frames.n_frames;
  report.n_slices = film.n_slices();
  const int64_t n = film.frames.n_frames;
  if (!film.is_list) {
    report.fps = 1.0 / film.frames.step_s;
  } else if (n > 1 && film.info.duration_s > 0) {
    report.fps = static_cast<double>(n - 1) / film.info.duration_s;
  }
  return report;
}

}  // namespace plateau::engine

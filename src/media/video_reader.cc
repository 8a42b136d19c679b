// Tested by video_test.cc, video_hostile_test.cc and video_memory_test.cc.
#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "media/frame_pixels.h"
#include "media/video.h"
#include "media/video_formats.h"
#include "media/video_geometry.h"
#include "media/video_opened.h"

namespace plateau::media {
namespace {

constexpr int kMaxThreads = 64;
// Containers round times to their ticks; a frame that is due by less than this counts as shown.
constexpr double kMaxTolerance_s = 0.0005;
// A jump over less would read the file again for the sake of a frame or two.
constexpr double kMinJump_s = 0.25;
// A frame after this much more than the last one's end is missing, not a matter of rounding.
constexpr double kEndSlack_s = 1.0;
// How far before the frame that is due a jump aims, one try after the other: an index may count
// frames in the order of decoding, and name one that is shown too late. The file learns from that
// by how much, so the second try is the first again.
constexpr std::array kJumpBack_s{0.0, 0.0, 1.0, 8.0};

void check_options(const VideoReadOptions& options, const VideoLimits& limits) {
  const bool native = options.width == 0 && options.height == 0;
  if (!native && (options.width < 1 || options.height < 1 ||
                  int64_t{options.width} * options.height > limits.max_pixels)) {
    throw_error(ErrorCode::kInvalidArgument,
                "[video] expected pictures of 1 to {} pixels, got {} x {}", limits.max_pixels,
                options.width, options.height);
  }
  if (options.n_threads < 1 || options.n_threads > kMaxThreads) {
    throw_error(ErrorCode::kInvalidArgument, "[video] expected 1 to {} decoder threads, got {}",
                kMaxThreads, options.n_threads);
  }
}

struct TimedFrame {
  FramePtr frame{checked_alloc(av_frame_alloc())};
  double time_s = 0;
};

}  // namespace

std::string VideoReadReport::damage() const {
  std::string text;
  const auto add = [&](int64_t n, const char* what) {
    if (n > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, what);
  };
  add(n_damaged, "damaged packets or frames were passed over or patched up");
  add(n_disordered, "frames had no time of their own or one out of order");
  add(n_after_end, "frames lie after the last one that can be read, which stands for them");
  return text;
}

/// Holds the frame that is shown now and the one after it: the first is right for a time as soon as
/// the second is known to be later.
struct VideoReader::Impl {
  Impl(const std::string& file_path, const FramePlan& frame_plan, const VideoLimits& video_limits,
       VideoReadOptions read_options)
      : path(file_path),
        plan(frame_plan),
        limits(video_limits),
        options(std::move(read_options)),
        pixels(file_path) {
    check_options(options, limits);
    open();
  }

  std::optional<Frame> next() {
    if (next_frame == plan.n_frames) return std::nullopt;
    const double timestamp_s = plan.timestamp_s(next_frame);
    advance(opened.origin_s + timestamp_s);
    const TimedFrame& shown = has_current ? current : following;
    Frame frame;
    frame.timestamp_s = timestamp_s;
    frame.shown_s = shown.time_s - opened.origin_s;
    frame.picture = picture_of(shown);
    ++next_frame;
    update_report(frame.picture);
    return frame;
  }

  VideoReadReport report;
  std::optional<Error> failure;  // what next() has thrown

 private:
  void open() {
    if (opened.file != nullptr) keep_counts();
    opened = open_video(path, limits, options.n_threads, options.should_cancel);
    tolerance_s = std::min(seconds(opened.file->stream().time_base) / 2, kMaxTolerance_s);
    following.frame = std::move(opened.first);
    following.time_s = opened.first_s;
    has_current = false;
    has_following = true;
    can_jump = can_jump && options.seek && has_index(opened.file->container()) &&
               !opened.reordered_without_times();
    if (can_jump && opened.file->container() == "matroska") load_index();
  }

  // The matroska demuxer reads its index at the first seek.
  void load_index() {
    if (!opened.file->seek(opened.origin_s) || !restart_at(opened.first_s)) reopen();
  }

  void reopen() {
    can_jump = false;
    open();
  }

  bool read_following() {
    const std::optional<double> time_s = opened.decoder->next(*following.frame);
    has_following = time_s.has_value();
    if (has_following) following.time_s = *time_s;
    return has_following;
  }

  bool is_due(double time_s) const { return following.time_s <= time_s + tolerance_s; }

  void advance(double time_s) {
    jump_towards(time_s);
    while (has_following && is_due(time_s)) {
      std::swap(current, following);
      has_current = true;
      read_following();
    }
    if (!has_following) {
      const double duration_s = opened.file->seconds_of(current.frame->pkt_duration);
      if (time_s > current.time_s + std::max(duration_s, 0.0) + kEndSlack_s) ++report.n_after_end;
    }
  }

  /// Whether decoding goes on at a frame that is shown by `time_s`.
  bool restart_at(double time_s) {
    opened.decoder->restart();
    has_current = false;
    return read_following() && is_due(time_s);
  }

  void jump_towards(double time_s) {
    if (!can_jump || !has_following || time_s - following.time_s < kMinJump_s) return;
    const std::optional<double> key_s = opened.file->key_frame_before(time_s);
    const double here_s = std::max(following.time_s, opened.decoder->position_s());
    // What the decoder holds back for the order of showing would be decoded in vain.
    const double held_s = here_s - following.time_s;
    if (!key_s.has_value() || *key_s <= here_s + held_s) return;
    for (const double back_s : kJumpBack_s) {
      opened.file->watch().start();
      if (!opened.file->seek(time_s - back_s)) break;
      ++report.n_seeks;
      if (restart_at(time_s)) return;
    }
    reopen();
  }

  Rgb8 picture_of(const TimedFrame& shown) {
    AVFrame& frame = *shown.frame;
    const VideoGeometry geometry =
        geometry_of(opened.file->context(), opened.file->stream(), frame);
    if (options.width == 0) {  // the size of the first picture is that of all
      if (geometry.shown_width * geometry.shown_height > limits.max_pixels) {
        throw_error(ErrorCode::kResourceExhausted,
                    "[video] expected frames of at most {} pixels, got {} x {} as shown in '{}'",
                    limits.max_pixels, geometry.shown_width, geometry.shown_height, path);
      }
      options.width = static_cast<int>(geometry.shown_width);
      options.height = static_cast<int>(geometry.shown_height);
    }
    return pixels.convert(frame, geometry, options.width, options.height);
  }

  void keep_counts() {
    const DecoderCounts& counts = opened.decoder->counts();
    before.n_decoded += counts.n_decoded;
    before.n_damaged += counts.n_damaged + opened.file->n_damaged();
    before.n_disordered += counts.n_disordered;
  }

  void update_report(const Rgb8& picture) {
    const DecoderCounts& counts = opened.decoder->counts();
    report.n_decoded = before.n_decoded + counts.n_decoded;
    report.n_damaged = before.n_damaged + counts.n_damaged + opened.file->n_damaged();
    report.n_disordered = before.n_disordered + counts.n_disordered;
    report.decoder_frame_bytes =
        std::max(report.decoder_frame_bytes, opened.decoder->peak_frame_bytes());
    report.picture_bytes = std::max(
        report.picture_bytes, pixels.buffer_bytes() + static_cast<int64_t>(picture.pixels.size()));
  }

  std::string path;
  FramePlan plan;
  VideoLimits limits;
  VideoReadOptions options;
  FramePixels pixels;
  OpenedVideo opened;
  TimedFrame current;
  TimedFrame following;
  bool has_current = false;
  bool has_following = false;
  bool can_jump = true;
  double tolerance_s = 0;
  int64_t next_frame = 0;
  DecoderCounts before;  // of decoders that were given up
};

VideoReader::VideoReader(const std::string& path, const FramePlan& plan, const VideoLimits& limits,
                         VideoReadOptions options)
    : impl_(std::make_unique<Impl>(path, plan, limits, std::move(options))) {}
VideoReader::~VideoReader() = default;
VideoReader::VideoReader(VideoReader&&) noexcept = default;
VideoReader& VideoReader::operator=(VideoReader&&) noexcept = default;

std::optional<Frame> VideoReader::next() {
  if (impl_->failure.has_value()) throw *impl_->failure;
  try {
    return impl_->next();
  } catch (const Error& error) {
    impl_->failure = error;
    throw;
  }
}

const VideoReadReport& VideoReader::report() const { return impl_->report; }

}  // namespace plateau::media

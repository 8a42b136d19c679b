// Films of any length, decoded frame by frame: a reader holds what its decoder needs for the next
// frame, one picture at the film's size and one at the size asked for, however long the film is.
//
// In this layer, FFmpeg's libraries are included by video_* and frame_pixels.cc only. Not
// thread-safe: one reader belongs to one thread; readers in several threads are independent.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "media/frame_sampling.h"
#include "media/image.h"

namespace plateau::media {

struct VideoLimits {
  /// Refuse a film whose frames have more pixels than this, before its decoder allocates one. The
  /// default admits 8192 x 4320.
  int64_t max_pixels = 36'000'000;
  /// Refuse a film that lasts longer.
  double max_duration_s = 7 * 24 * 3600.0;
  /// Give up when the length of a film is not found, or the next frame does not come, within this
  /// many packets of data.
  int64_t max_packets = 50'000'000;
  /// Give up when opening a film, finding its length or decoding one more frame takes longer.
  double max_wait_s = 120;
};

/// What decides how much memory reading takes; upper bounds, from the header and the first frame.
struct VideoMemory {
  int64_t frame_bytes = 0;     // one decoded frame with what the decoder notes about it
  int frames_held = 0;         // by one decoder thread: references, frames that wait to be shown
  int64_t codec_bytes = 0;     // the decoder's own tables
  int64_t index_bytes = 0;     // the container's; grows with the number of frames
  int64_t rgb_bytes = 0;       // one frame at the stored size as RGB or RGBA
  int64_t upright_height = 0;  // as stored, turned
};

/// What is known before the film is read: from its header, its first frame and its packets' times.
struct VideoInfo {
  int64_t width = 0;             // as shown: upright, with square pixels
  int64_t height = 0;            // as shown
  std::string container;         // "mov", "matroska", "avi", "mpegts", "ogg" or "gif", by content
  std::string codec;             // as FFmpeg calls it: "h264", ...
  double duration_s = 0;         // from the first frame to the end of the last
  bool duration_walked = false;  // found by reading the file to its end, without decoding
  double fps = 0;                // on average; 0: unknown
  VideoMemory memory;
  /// What a person should know: several video streams, damage, colours that are not converted.
  std::vector<std::string> notes;
};

/// Opens and checks the file and decodes one frame. Finds the end by seeking to it where the
/// container has an index, else by reading the packets. `should_cancel` is polled and must not
/// throw.
/// `path` is a local file name, never a URL or an option. Errors: kNotFound (missing, unreadable),
/// kUnsupported (a container or codec, by name; no video in it; not a regular file), kCorrupt (no
/// frame can be decoded), kResourceExhausted (a limit), kCancelled.
VideoInfo probe_video(const std::string& path, const VideoLimits& limits,
                      const std::function<bool()>& should_cancel = {});

/// Upper bound of the heap that a VideoReader with pictures of [width, height] holds, the picture
/// that it hands out included. Pure arithmetic.
int64_t video_reader_bytes(const VideoMemory& memory, int width, int height, int n_threads = 1);

struct Frame {
  double timestamp_s = 0;  // when it was asked for, since the film's first frame
  double shown_s = 0;      // since when the film shows it; at most timestamp_s, but for frame one
  Rgb8 picture;
};

struct VideoReadOptions {
  int width = 0;  // of the pictures; 0 with height 0: the film's own size as shown
  int height = 0;
  int n_threads = 1;  // of the decoder; each one more may hold a frame more
  bool seek = true;   // jump over what need not be decoded; the frames are the same either way
  std::function<bool()> should_cancel = {};  // polled for every packet; must not throw
};

/// What reading came across, so far.
struct VideoReadReport {
  int64_t n_decoded = 0;     // frames decoded, those not asked for included
  int64_t n_seeks = 0;       // jumps
  int64_t n_damaged = 0;     // packets skipped and frames patched up by the decoder
  int64_t n_disordered = 0;  // frames whose time is not after the one before, or missing
  int64_t n_after_end = 0;   // frames asked for after the last one's end; they show the last one
  int64_t decoder_frame_bytes = 0;  // most bytes in decoded frames at once, counted
  int64_t picture_bytes = 0;        // most bytes in conversion buffers and the picture handed out

  /// The damage in a sentence; empty when there was none.
  std::string damage() const;
};

/// Yields the frames of a plan in order: at each time the frame that the film shows then, which is
/// the last one whose time is not after it, to within half a tick of the film's clock or half a
/// millisecond. Before the first frame, the first; after the last, the last.
///
/// Pixels: FFmpeg's libswscale converts to 8-bit RGB by the matrix and range that the film names
/// (BT.709 from 720 lines and BT.601 below where it names none), chroma interpolated; not colour
/// managed, not tone mapped, not deinterlaced. Alpha is composited on white as for pictures. The
/// upright frame is then resized from its stored size to the size asked for exactly as pictures
/// are: each axis by itself, as Pillow's BICUBIC does, bit for bit.
class VideoReader {
 public:
  /// Opens the file; decodes the first frame. Errors: as probe_video(), kInvalidArgument for a size
  /// that is not positive or has more pixels than the limit, or a number of threads outside [1,
  /// 64].
  VideoReader(const std::string& path, const FramePlan& plan, const VideoLimits& limits,
              VideoReadOptions options = {});
  ~VideoReader();
  VideoReader(VideoReader&&) noexcept;
  VideoReader& operator=(VideoReader&&) noexcept;

  /// The next frame, or nullopt after plan.n_frames of them. Damaged packets are passed over and
  /// counted. Errors: kCorrupt when nothing can be decoded, kResourceExhausted (a limit),
  /// kCancelled. After an error only the same error comes.
  std::optional<Frame> next();

  const VideoReadReport& report() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace plateau::media

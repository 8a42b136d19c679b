// Tested by video_memory_test.cc.
#include "media/video_memory.h"

#include <algorithm>
#include <array>
#include <utility>

namespace plateau::media {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int kAlignment = 64;
// Decoder and demuxer states, measured at 1 to 3 MiB; FFV1's context models are larger.
constexpr int64_t kCodecBytes = 6 * kMiB;
constexpr int64_t kFfv1Bytes = 48 * kMiB;
// Per frame in the index: AVIndexEntry (24), and a mov demuxer's tables of sizes, times, offsets;
// or what the matroska demuxer keeps for each key frame, measured at 215.
constexpr int64_t kIndexEntryBytes = 64;
constexpr int64_t kCueBytes = 256;
// libswscale: filters and line buffers for each column.
constexpr int64_t kScalerColumnBytes = 512;
// The reader's own: the frame shown now and the next.
constexpr int kReaderFrames = 2;

/// H.264, table A-1: macroblocks in the decoded picture buffer, by level.
int64_t h264_buffer_macroblocks(int level) {
  constexpr std::array<std::pair<int, int64_t>, 16> kLevels{{{10, 396},
                                                             {11, 900},
                                                             {13, 2376},
                                                             {20, 2376},
                                                             {21, 4752},
                                                             {22, 8100},
                                                             {31, 18000},
                                                             {32, 20480},
                                                             {41, 32768},
                                                             {42, 34816},
                                                             {50, 110400},
                                                             {52, 184320},
                                                             {62, 696320}}};
  for (const auto& [top, macroblocks] : kLevels) {
    if (level <= top) return macroblocks;
  }
  return kLevels.back().second;
}

/// References and waiting frames that a stream of this level may make the decoder hold.
int h264_frames(const AVCodecContext& context) {
  constexpr int kMost = 16;
  const int64_t macroblocks =
      int64_t{(context.coded_width + 15) / 16} * ((context.coded_height + 15) / 16);
  const int64_t by_level = context.level > 0 && macroblocks > 0
                               ? h264_buffer_macroblocks(context.level) / macroblocks
                               : kMost;
  const int stated = std::max(context.refs, context.has_b_frames);
  return std::clamp(std::max(static_cast<int>(std::min<int64_t>(by_level, kMost)), stated), 1,
                    kMost);
}

/// H.265, equation A-2: frames in the decoded picture buffer, by how much of the level's picture
/// size is used.
int hevc_frames(const AVCodecContext& context) {
  constexpr std::array<std::pair<int, int64_t>, 8> kLevels{{{30, 36864},
                                                            {60, 122880},
                                                            {63, 245760},
                                                            {90, 552960},
                                                            {93, 983040},
                                                            {123, 2228224},
                                                            {156, 8912896},
                                                            {186, 35651584}}};
  constexpr int kMost = 16;
  const int64_t n_pixels = int64_t{context.coded_width} * context.coded_height;
  for (const auto& [top, most_pixels] : kLevels) {
    if (context.level <= 0 || context.level > top) continue;
    if (n_pixels <= most_pixels / 4) return kMost;
    if (n_pixels <= most_pixels / 2) return 12;
    if (n_pixels <= most_pixels / 4 * 3) return 8;
    return 6;
  }
  return kMost;
}

struct Held {
  int n_frames;             // references and waiting frames
  int64_t bytes_per_pixel;  // motion vectors and block types that are kept with each frame
};

Held held_by(const AVCodecContext& context) {
  switch (context.codec_id) {
    case AV_CODEC_ID_H264:
      return {h264_frames(context), 1};
    case AV_CODEC_ID_HEVC:
      return {hevc_frames(context), 1};
    case AV_CODEC_ID_VP9:
    case AV_CODEC_ID_AV1:
      return {8, 1};
    case AV_CODEC_ID_VP8:
    case AV_CODEC_ID_THEORA:
      return {4, 1};
    case AV_CODEC_ID_MPEG4:
    case AV_CODEC_ID_MPEG2VIDEO:
    case AV_CODEC_ID_MPEG1VIDEO:
      return {3, 1};
    default:
      return {1, 0};
  }
}

int64_t padded_frame_bytes(AVCodecContext& context, const AVFrame& frame) {
  int width = std::max(frame.width, context.coded_width);
  int height = std::max(frame.height, context.coded_height);
  std::array<int, AV_NUM_DATA_POINTERS> alignment{};
  avcodec_align_dimensions2(&context, &width, &height, alignment.data());
  const int n_bytes = av_image_get_buffer_size(static_cast<AVPixelFormat>(frame.format),
                                               width + kAlignment, height + 16, kAlignment);
  return std::max(n_bytes, 0);
}

}  // namespace

VideoMemory memory_of(VideoFile& file, AVCodecContext& context, const AVFrame& frame,
                      bool transposed) {
  const int64_t n_pixels = int64_t{frame.width} * frame.height;
  const Held held = held_by(context);
  const AVPixFmtDescriptor* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  const bool alpha = format != nullptr && (format->flags & AV_PIX_FMT_FLAG_ALPHA) != 0;
  VideoMemory memory;
  memory.frame_bytes = padded_frame_bytes(context, frame) + n_pixels * held.bytes_per_pixel;
  memory.frames_held = held.n_frames + 2;  // the one at work, and one that is about to be replaced
  memory.codec_bytes = context.codec_id == AV_CODEC_ID_FFV1 ? kFfv1Bytes : kCodecBytes;
  const int64_t entry_bytes = file.container() == "matroska" ? kCueBytes : kIndexEntryBytes;
  memory.index_bytes = entry_bytes * avformat_index_get_entries_count(&file.stream());
  memory.rgb_bytes = (int64_t{frame.width} * (alpha ? 4 : 3) + kAlignment) * frame.height;
  memory.upright_height = transposed ? frame.width : frame.height;
  return memory;
}

int64_t resampler_bytes(int64_t in_width, int64_t in_height, int64_t out_width,
                        int64_t out_height) {
  const auto taps = [](int64_t in, int64_t out) {
    return in == out ? 1 : std::min(4 * ((in + out - 1) / out) + 1, std::max(in, int64_t{5}));
  };
  const int64_t row = out_width * 3;
  return row * taps(in_height, out_height) + row * 4 +
         4 * (out_width * (taps(in_width, out_width) + 2) +
              out_height * (taps(in_height, out_height) + 2));
}

int64_t video_reader_bytes(const VideoMemory& memory, int width, int height, int n_threads) {
  // A packet in the demuxer and one in the decoder, each no larger than a raw frame.
  constexpr int kPackets = 2;
  const int64_t n_frames = memory.frames_held + kReaderFrames + kPackets + (n_threads - 1);
  const int64_t in_width =
      memory.upright_height > 0 ? memory.rgb_bytes / 3 / memory.upright_height + 1 : 1;
  return n_frames * memory.frame_bytes + n_threads * memory.codec_bytes + memory.index_bytes +
         memory.rgb_bytes + kScalerColumnBytes * (in_width + memory.upright_height) +
         resampler_bytes(in_width, std::max<int64_t>(memory.upright_height, 1), width, height) +
         int64_t{width} * height * 3;
}

}  // namespace plateau::media

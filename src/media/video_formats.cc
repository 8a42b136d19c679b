// Tested by video_hostile_test.cc.
#include "media/video_formats.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/check.h"
#include "media/video_handle.h"

namespace plateau::media {
namespace {

struct Container {
  const char* name;
  bool has_index;
};

// Names are the first of libavformat's own.
constexpr std::array kContainers{
    Container{"mov", true},       // mp4, m4v, mov, 3gp
    Container{"matroska", true},  // mkv, webm
    Container{"avi", true},      Container{"mpegts", false},
    Container{"ogg", false},     Container{"gif", false},
};

constexpr std::array kCodecs{
    AV_CODEC_ID_H264,   AV_CODEC_ID_HEVC,  AV_CODEC_ID_VP8,        AV_CODEC_ID_VP9,
    AV_CODEC_ID_AV1,    AV_CODEC_ID_MPEG4, AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_MPEG1VIDEO,
    AV_CODEC_ID_THEORA, AV_CODEC_ID_MJPEG, AV_CODEC_ID_PRORES,     AV_CODEC_ID_FFV1,
    AV_CODEC_ID_PNG,    AV_CODEC_ID_GIF,   AV_CODEC_ID_RAWVIDEO,
};

std::string joined(const auto& names, const auto& name_of) {
  std::string text;
  for (const auto& entry : names) text += (text.empty() ? "" : ", ") + std::string(name_of(entry));
  return text;
}

}  // namespace

const char* container_name(const AVInputFormat& format) {
  const std::string_view names = format.name;
  const std::string_view first = names.substr(0, names.find(','));
  for (const Container& container : kContainers) {
    if (first == container.name) return container.name;
  }
  return nullptr;
}

bool has_index(const std::string& container) {
  return std::any_of(kContainers.begin(), kContainers.end(), [&](const Container& entry) {
    return entry.has_index && container == entry.name;
  });
}

const AVCodec& find_decoder(int codec_id, const std::string& path) {
  const auto id = static_cast<AVCodecID>(codec_id);
  if (std::find(kCodecs.begin(), kCodecs.end(), id) == kCodecs.end()) {
    throw_error(ErrorCode::kUnsupported,
                "[video] expected one of the codecs {}, got {} in '{}'; try converting it",
                codec_names(), avcodec_get_name(id), path);
  }
  const AVCodec* decoder = avcodec_find_decoder(id);
  if (decoder == nullptr) {
    throw_error(ErrorCode::kUnsupported,
                "[video] expected a codec that this build of FFmpeg decodes, got {} in '{}'; try "
                "converting it",
                avcodec_get_name(id), path);
  }
  return *decoder;
}

std::string container_names() {
  return joined(kContainers, [](const Container& container) { return container.name; });
}

std::string codec_names() {
  return joined(kCodecs, [](AVCodecID id) { return avcodec_get_name(id); });
}

}  // namespace plateau::media

// The containers and codecs that are read. All others are refused by name: each parser more is one
// more that a hostile file can reach.
#pragma once

#include <string>

struct AVCodec;
struct AVInputFormat;

namespace plateau::media {

/// The short name ("mov" for "mov,mp4,m4a,3gp,3g2,mj2"), or null for a container that is not read.
const char* container_name(const AVInputFormat& format);

/// Whether seeking lands on a frame that can be decoded by itself, because the container has an
/// index of them.
bool has_index(const std::string& container);

/// The decoder of a codec (an AVCodecID). Errors: kUnsupported naming the codec, where it is not
/// read or FFmpeg was built without it. `path` is for the message.
const AVCodec& find_decoder(int codec_id, const std::string& path);

/// For the user: all that are read, comma-separated.
std::string container_names();
std::string codec_names();

}  // namespace plateau::media

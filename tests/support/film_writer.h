// Synthetic films, written with FFmpeg's own encoders (those that every build of it has), and a
// clock that can be read back from a decoded frame.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace plateau::test {

/// Interleaved 8-bit RGB or, with four channels, RGBA.
struct FilmCanvas {
  int width = 0;
  int height = 0;
  int n_channels = 3;
  std::vector<uint8_t> pixels;

  uint8_t* at(int x, int y) {
    return pixels.data() +
           (static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)) *
               static_cast<size_t>(n_channels);
  }
};

struct FilmSpec {
  std::string container = "mp4";  // a muxer's name: mp4, mov, matroska, avi, mpegts, gif, ogg, wav
  std::string encoder = "mpeg4";  // an encoder's name
  std::string pixel_format = {};  // an AVPixelFormat's name; empty: the encoder's first
  int width = 60;
  int height = 48;
  int tick_num = 1;  // seconds per frame number, as a fraction
  int tick_den = 25;
  int gop = 12;  // frames from one that stands alone to the next
  int b_frames = 0;
  int quantizer = 2;   // lower is better
  int rotation = 0;    // degrees clockwise that a player turns the frames by
  int aspect_num = 1;  // of a pixel
  int aspect_den = 1;
  bool mirror = false;  // a player mirrors left and right after that
  bool full_range = false;
  bool tagged = true;       // says what range and matrix it uses
  std::string matrix = {};  // "bt601" or "bt709"; empty: BT.601, not tagged
  bool sound = false;       // a second, silent stream
  bool video = true;
  std::vector<std::pair<std::string, std::string>> muxer_options = {};
  std::vector<std::pair<std::string, std::string>> encoder_options = {};
};

/// Draws frame i. The canvas holds what the previous call left.
using DrawFrame = std::function<void(int64_t i, FilmCanvas& canvas)>;

/// Writes n_frames frames; frame i is due at ticks(i), in units of the spec's tick, rising; by
/// default at i.
void write_film(const std::string& path, const FilmSpec& spec, int64_t n_frames,
                const DrawFrame& draw, const std::function<int64_t(int64_t)>& ticks = {});

bool has_encoder(const std::string& name);

/// The clock: `number` below 2^20 as 5 x 4 black and white blocks that fill the canvas.
void draw_clock(int64_t number, FilmCanvas& canvas);
/// Reads it back from RGB of any size: [height, width, 3]. -1 where a block is neither black nor
/// white.
int64_t read_clock(const std::vector<uint8_t>& rgb, int width, int height);

}  // namespace plateau::test

// One point of a sweep: everything that a measurement depends on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "plateau/options.h"
#include "plateau/request.h"

namespace plateau::bench {

enum class InputKind {
  kTokens,  // random embeddings stand for a picture: exact counts, no encoder
  kTiles,   // random tiles go through the vision encoder
  kFrames,  // random frames of a film go through the vision encoder
  kImage,   // a file goes through everything
};

struct BenchPoint {
  EngineOptions engine;
  /// Cache, policy and, for kImage, the picture's options. Messages are not used.
  Request request;
  InputKind input = InputKind::kTokens;
  int64_t n_input = 0;  // visual tokens, tiles or frames
  // kFrames: pixels of a frame, as if it was sampled once a second. A family of tiles stretches it
  // to one.
  int frame_width = 448;
  int frame_height = 448;
  std::string image;  // kImage
  int n_decode = 16;  // tokens to decode after the prompt; may be 0
  int n_repeats = 3;
  bool isolated = true;  // measured in a process of its own
  bool profile = false;
  bool against_llama_cpp = false;  // REQUIRES: kTokens
  int n_ubatch = 0;                // llama.cpp's; 0: the size of our largest block
};

/// May be empty; true stops after the current block with kCancelled.
using CancelPoll = std::function<bool()>;

}  // namespace plateau::bench

// Options as plain structs. Those that change the answer come first, those that change only speed
// or memory second.
#pragma once

#include <cstdint>
#include <string>

namespace plateau {

/// How the next token is picked.
struct SamplingOptions {
  float temperature = 0.0f;  // 0: always the likeliest token
  int top_k = 40;            // keep the k likeliest; 0: all
  float top_p = 0.95f;       // keep the likeliest tokens that sum to p; 1: all
  float min_p = 0.05f;       // drop tokens less likely than this share of the likeliest
  uint32_t seed = 1;         // of the random choice when temperature > 0
};

/// How pictures become tokens.
struct ImageOptions {
  // Behaviour.
  int max_tiles = 0;      // cap on tiles per picture; 0: native detail, as many as it needs
  bool thumbnail = true;  // append the whole picture as one more tile, as the family does
  // Limits.
  int64_t max_pixels = 1'000'000'000;          // refuse larger pictures from their header
  int64_t max_spool_bytes = int64_t{4} << 30;  // temporary disc space for one picture
};

/// How the cache stores keys and values.
enum class CacheType { kF16, kQ8_0, kF32 };

/// What is loaded and where it runs; fixed for the life of an engine.
struct EngineOptions {
  // Behaviour.
  std::string model_path;     // text model, GGUF
  std::string mmproj_path;    // vision projector, GGUF; empty: text only
  std::string chat_template;  // Jinja source used instead of the model's own; empty: the model's
  CacheType cache_type_k = CacheType::kF16;
  CacheType cache_type_v = CacheType::kF16;
  // Performance.
  std::string device;     // a name from `plateau info`; empty: the first GPU, or the CPU
  int n_gpu_layers = -1;  // layers on the device, from the last; negative: all
  int n_threads = 0;      // CPU threads; 0: as many as there are usable cores
  int encoder_batch = 1;  // tiles encoded at once; more is faster and takes more memory
  int block = 0;          // tokens per prefill block; 0: as many whole tiles as fit 1024 tokens
};

}  // namespace plateau

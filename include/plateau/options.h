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
  int max_tiles = 0;              // cap on tiles per picture; 0: native detail, as many as it needs
  int64_t min_tokens = 0;         // enlarge a picture of fewer tokens; 0: as the family does
  int64_t max_tokens = 0;         // shrink a picture of more tokens; 0: native size
  int64_t max_visual_tokens = 0;  // lower the resolution until all pictures fit; 0: no cap
  bool thumbnail = true;          // append the whole picture as one more tile, as the family does
  // Limits.
  int64_t max_pixels = 1'000'000'000;          // refuse larger pictures from their header
  int64_t max_spool_bytes = int64_t{4} << 30;  // temporary disc space for one picture
};

/// How films become tokens.
struct VideoOptions {
  // Behaviour.
  double fps = 1.0;        // frames that are looked at, per second of film
  int max_frames = 0;      // of a longer film, so many frames spread evenly; 0: no cap
  int64_t max_tokens = 0;  // lower the size of a film's frames until they fit (families of native
                           // size), else their number; 0: no cap
  /// Shrink frames that make more tokens (families of native size); 0: native size. The default is
  /// what Qwen2.5-VL's own processor does.
  int64_t max_frame_tokens = 768;
  double start_s = 0;  // the part that is looked at: from here
  double end_s = 0;    // up to here; 0: to the end
};

/// How the cache stores keys and values.
enum class CacheType { kF16, kQ8_0, kF32 };

/// How attention scores are smoothed over neighbours before selection.
enum class Pool { kNone, kAverage, kMax };
/// Who is a neighbour: the next slots of the cache, or the next tokens on the picture's grid.
enum class PoolAxis { kCache, kGrid };
/// How the query heads of one kv head share their scores.
enum class GroupReduction { kMean, kMax };
/// Where proxy queries stand while a block runs: where the real question will stand, or right after
/// the block.
enum class ProxyPosition { kTrue, kAfterBlock };

/// What eviction policies can be told. Fields that a policy does not use are ignored.
struct PolicyOptions {
  int window = 32;  // W: proxy queries, the last tokens of the prompt
  Pool pool = Pool::kAverage;
  int pool_kernel = 5;  // odd; its side on the grid
  PoolAxis pool_axis = PoolAxis::kCache;
  GroupReduction group = GroupReduction::kMean;
  ProxyPosition proxy_position = ProxyPosition::kTrue;
  uint64_t seed = 1;  // of policy "random"
};

/// What a prefill block is counted in.
enum class BlockUnit { kTokens, kTile, kRow, kFrame };

/// How much of the prompt the cache keeps, and which part.
struct KvOptions {
  // Behaviour.
  int budget = 0;                 // M: tokens kept per layer and kv head; 0: all
  std::string policy = "snapkv";  // a name from the policy registry
  PolicyOptions policy_options = {};
  bool strict = false;  // evict before each block, so that the arena never exceeds the budget
  bool bulk = true;     // run what fits the budget in large blocks first
  // Performance.
  BlockUnit block_unit = BlockUnit::kTokens;  // otherwise: one tile, one row of its tokens, or one
                                              // picture or film's slice per block
  int block = 0;  // b: tokens per prefill block; 0: as many whole tiles as fit 1024 tokens
};

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
  int encoder_batch = 0;  // tiles encoded at once; 0: as many as make 1024 patches
  /// Bytes that the vision encoder may hold beside its weights; 0: no bound. A picture that is too
  /// large for it is encoded in bands, which Usage::notes and ImageReport::n_bands tell.
  int64_t encoder_memory = 0;
  /// Memory for the embeddings of whole pictures, so that asking about the same picture again does
  /// not encode it again; a picture that does not fit is encoded each time. 0: none are kept.
  int64_t embedding_cache_bytes = 0;
};

}  // namespace plateau

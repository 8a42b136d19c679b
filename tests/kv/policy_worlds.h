// The tiny models that policies are tested on, and the block sizes.
#pragma once

#include "plateau/options.h"
#include "support/synth.h"

namespace plateau::test {

// Head size 32, as q8_0 wants; qwen2 has biases and one kv head, qwen3 norms q and k and has two.
inline const TinyTextModel kQwen2 = {.arch = "qwen2",
                                     .n_embd = 64,
                                     .n_head = 2,
                                     .n_head_kv = 1,
                                     .head_dim = 32,
                                     .n_ff = 64,
                                     .seed = 3,
                                     .qk_gain = 1.5F};
inline const TinyTextModel kQwen3 = {.arch = "qwen3",
                                     .n_layer = 2,
                                     .n_embd = 64,
                                     .n_head = 4,
                                     .n_head_kv = 2,
                                     .head_dim = 32,
                                     .n_ff = 64,
                                     .seed = 4,
                                     .qk_gain = 1.5F};

// With M-RoPE: the picture's tokens share their temporal position.
inline const TinyTextModel kQwen2VL = {.arch = "qwen2vl",
                                       .n_embd = 64,
                                       .n_head = 2,
                                       .n_head_kv = 1,
                                       .head_dim = 32,
                                       .n_ff = 64,
                                       .seed = 5,
                                       .qk_gain = 1.5F};

inline constexpr int kAll = 1000;  // a block that holds any prompt of these tests
inline constexpr int kBlockSizes[] = {1, 3, 7, 64, kAll};

struct World {
  const char* name;
  const TinyTextModel* tiny;
  CacheType cache_type;
};
inline constexpr World kWorlds[] = {{"qwen2_f16", &kQwen2, CacheType::kF16},
                                    {"qwen2_q8_0", &kQwen2, CacheType::kQ8_0},
                                    {"qwen2vl_f16", &kQwen2VL, CacheType::kF16},
                                    {"qwen3_f16", &kQwen3, CacheType::kF16},
                                    {"qwen3_q8_0", &kQwen3, CacheType::kQ8_0}};

}  // namespace plateau::test

// Random models in published layouts, small enough for unit tests or of any real model's shape.
// The same description gives the same file on every platform.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ggml.h"
#include "synth/gguf_plan.h"

namespace plateau::synth {

/// A decoder. Weights have a deviation of scale / sqrt(fan-in), so that activations stay near 1.
struct TinyTextModel {
  std::string arch =
      "qwen3";  // "qwen2" (biases, no q/k norm), "qwen2vl" (the same), "llama" (neither)
  int n_layer = 2;
  int n_embd = 64;
  int n_head = 4;
  int n_head_kv = 2;
  int head_dim = 16;  // qwen2 and qwen2vl require n_head * head_dim == n_embd
  int n_ff = 128;
  int n_vocab = 0;  // 0: the vocabulary's own size, a multiple of 32
  int n_ctx_train = 32768;
  float rope_freq_base = 1e6F;
  /// qwen2vl: frequency pairs for t, h, w and 0; all 0: in the published ratio of 16 : 24 : 24.
  std::array<int32_t, 4> rope_sections = {0, 0, 0, 0};
  float rms_eps = 1e-6F;
  bool tied = false;               // no output.weight: the embedding serves as output
  ggml_type type = GGML_TYPE_F32;  // of the matrices: F32, F16, Q8_0, ...; norms and biases are F32
  uint64_t seed = 1;
  float scale = 1.0F;
  /// The deviation of q.k/sqrt(head_dim) is about qk_gain^2. Above 1, attention picks tokens rather
  /// than averages them, and the rounding of flash attention shows more.
  float qk_gain = 1.0F;
  bool chat_template = true;
  std::vector<std::string> extra_tokens = {};  // control tokens, see make_tiny_vocab()
};

/// An InternVL vision tower with its projector ("internvl" in llama.cpp's mmproj files).
struct TinyVision {
  int tile = 112;
  int patch = 14;
  int n_embd = 64;
  int n_layer = 2;
  int n_head = 4;
  int n_ff = 128;
  int scale_factor = 4;     // pixel shuffle: scale_factor^2 patches become one token
  int projection_dim = 64;  // the text model's n_embd
  int n_mid = 0;            // width between the projector's two layers; 0: projection_dim
  int min_tiles = 1;
  int max_tiles = 4096;
  float eps = 1e-6F;
  /// Published files have the class token's row first in the position table; llama.cpp's graph
  /// reads it last. Both orders hold the same rows, so that they are the same model to the right
  /// reader.
  bool class_first = true;
  /// InternViT-6B: RMS norm without bias, norm over the whole width of Q and K, no Q/K/V bias.
  /// llama.cpp computes this form only for n_embd 3200 and n_layer 45.
  bool rms_qk_norm = false;
  uint64_t seed = 1;
  ggml_type type = GGML_TYPE_F16;  // of the matrices
};

/// A Qwen2.5-VL vision tower with its merger ("qwen2.5vl_merger" in llama.cpp's mmproj files).
struct TinyQwenVision {
  int patch = 14;
  int n_embd = 64;
  int n_layer = 4;
  int n_head = 4;
  int n_ff = 96;            // llama.cpp takes gate, up and down for swapped where it equals n_embd
  int full_every = 2;       // every full_every-th layer attends to all patches
  int projection_dim = 64;  // the text model's n_embd
  float eps = 1e-6F;
  uint64_t seed = 1;
  ggml_type type = GGML_TYPE_F16;  // of the matrices
};

/// n_patch^2 / scale_factor^2 of one tile.
int tokens_per_tile(const TinyVision& vision);

GgufPlan plan_tiny_text(const TinyTextModel& model);
GgufPlan plan_tiny_vision(const TinyVision& vision);
GgufPlan plan_tiny_qwen_vision(const TinyQwenVision& vision);

void write_tiny_text(const TinyTextModel& model, const std::string& path,
                     const GgufMutations& mutations = {});
void write_tiny_vision(const TinyVision& vision, const std::string& path,
                       const GgufMutations& mutations = {});
void write_tiny_qwen_vision(const TinyQwenVision& vision, const std::string& path,
                            const GgufMutations& mutations = {});

/// The shape of a real half-billion-parameter qwen2, q8_0: some 530 MB.
TinyTextModel half_billion_shape();

}  // namespace plateau::synth

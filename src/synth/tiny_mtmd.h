// Random projectors that llama.cpp's library runs and Plateau has no tower for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ggml.h"
#include "synth/gguf_plan.h"

namespace plateau::synth {

/// A LLaVA projector: a CLIP or SigLIP tower over one square, or over the squares of a grid, and
/// two linear layers.
struct TinyLlava {
  std::string projector_type = "mlp";  // or "janus_pro": SigLIP's, all layers run
  int chunk = 56;
  int patch = 14;
  int n_embd = 64;
  int n_layer = 3;  // mlp: the last one is not run
  int n_head = 4;
  int n_ff = 96;            // the library takes up and down for swapped where it equals n_embd
  int projection_dim = 64;  // the text model's n_embd
  /// CLIP's: a class token, a norm before the layers. Otherwise SigLIP's.
  bool is_clip = true;
  bool has_norms = false;  // Yi-VL: norms in the projector
  bool swaps_ffn = false;  // as older files name them
  /// Width and height in pixels of what a larger picture becomes, pair by pair.
  std::vector<int32_t> grid_sizes = {};
  uint64_t seed = 1;
  ggml_type type = GGML_TYPE_F16;  // of the matrices
};

/// An Idefics3 projector as SmolVLM has it ("idefics3"): a SigLIP tower, pixel shuffle, one matrix.
struct TinyIdefics3 {
  int chunk = 56;
  int patch = 14;
  int n_embd = 64;
  int n_layer = 2;
  int n_head = 4;
  int n_ff = 96;
  int scale_factor = 2;
  int projection_dim = 64;
  int longest_edge = 224;  // 0: older files, which do not say
  uint64_t seed = 1;
  ggml_type type = GGML_TYPE_F16;
};

GgufPlan plan_tiny_llava(const TinyLlava& vision);
GgufPlan plan_tiny_idefics3(const TinyIdefics3& vision);

void write_tiny_llava(const TinyLlava& vision, const std::string& path,
                      const GgufMutations& mutations = {});
void write_tiny_idefics3(const TinyIdefics3& vision, const std::string& path,
                         const GgufMutations& mutations = {});

/// What a text model needs beside the tiny vocabulary to read idefics3's pictures, cut into up to
/// `n_side` rows and columns: TinyTextModel::extra_tokens.
std::vector<std::string> idefics3_tokens(int n_side = 4);

}  // namespace plateau::synth

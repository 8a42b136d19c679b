#include "synth/tiny_mtmd.h"

#include <fmt/format.h>

#include <cmath>

#include "synth/tensor_list.h"

namespace plateau::synth {
namespace {

uint32_t u32(int value) { return static_cast<uint32_t>(value); }

template <typename Vision>
GgufPlan plan_keys(const Vision& v, const std::string& projector_type) {
  GgufPlan plan;
  plan.seed = v.seed;
  plan.keys = {
      {"general.architecture", std::string("clip")},
      {"general.name", "tiny random " + projector_type},
      {"general.type", std::string("mmproj")},
      {"clip.has_vision_encoder", true},
      {"clip.projector_type", projector_type},
      {"clip.vision.embedding_length", u32(v.n_embd)},
      {"clip.vision.feed_forward_length", u32(v.n_ff)},
      {"clip.vision.block_count", u32(v.n_layer)},
      {"clip.vision.projection_dim", u32(v.projection_dim)},
      {"clip.vision.image_size", u32(v.chunk)},
      {"clip.vision.patch_size", u32(v.patch)},
      {"clip.vision.attention.head_count", u32(v.n_head)},
      {"clip.vision.attention.layer_norm_epsilon", 1e-6F},
      {"clip.vision.image_mean", std::vector<float>{0.5F, 0.45F, 0.4F}},
      {"clip.vision.image_std", std::vector<float>{0.5F, 0.4F, 0.3F}},
  };
  return plan;
}

template <typename Vision>
void add_tower(const Vision& v, bool has_class, bool swaps_ffn, TensorList& tensors) {
  tensors.add({.name = "v.patch_embd.weight",
               .ne = {v.patch, v.patch, 3, v.n_embd},
               .type = ggml_is_quantized(v.type) ? GGML_TYPE_F16 : v.type,  // rows are too short
               .deviation = 1.0F / std::sqrt(3.0F * static_cast<float>(v.patch * v.patch))});
  const int64_t n_side = v.chunk / v.patch;
  tensors.add({.name = "v.position_embd.weight",
               .ne = {v.n_embd, n_side * n_side + (has_class ? 1 : 0)},
               .deviation = 0.5F});
  for (int il = 0; il < v.n_layer; ++il) {
    const std::string block = fmt::format("v.blk.{}.", il);
    const auto linear = [&](const char* name, int n_in, int n_out) {
      tensors.matrix(block + name + ".weight", n_in, n_out);
      tensors.bias(block + name + ".bias", n_out);
    };
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_out"}) {
      linear(name, v.n_embd, v.n_embd);
    }
    linear(swaps_ffn ? "ffn_down" : "ffn_up", v.n_embd, v.n_ff);
    linear(swaps_ffn ? "ffn_up" : "ffn_down", v.n_ff, v.n_embd);
    for (const char* name : {"ln1", "ln2"}) {
      tensors.norm(block + name + ".weight", v.n_embd);
      tensors.bias(block + name + ".bias", v.n_embd);
    }
  }
}

void add_norm(const std::string& name, int64_t n, TensorList& tensors) {
  tensors.norm(name + ".weight", n);
  tensors.bias(name + ".bias", n);
}

}  // namespace

GgufPlan plan_tiny_llava(const TinyLlava& v) {
  GgufPlan plan = plan_keys(v, v.projector_type);
  if (!v.is_clip) plan.keys.emplace_back("clip.use_gelu", true);
  if (!v.grid_sizes.empty()) {
    plan.keys.emplace_back("clip.vision.image_grid_pinpoints", v.grid_sizes);
  }
  TensorList tensors(plan, v.type, /*scale=*/1.0F);
  add_tower(v, v.is_clip, v.swaps_ffn, tensors);
  if (v.is_clip) {
    tensors.vector("v.class_embd", v.n_embd, 0.0F, 1.0F);
    add_norm("v.pre_ln", v.n_embd, tensors);
  } else {
    tensors.bias("v.patch_embd.bias", v.n_embd);
    add_norm("v.post_ln", v.n_embd, tensors);
  }
  const bool is_janus = v.projector_type == "janus_pro";
  const std::string last = is_janus ? "mm.1" : v.has_norms ? "mm.3" : "mm.2";
  tensors.matrix("mm.0.weight", v.n_embd, v.projection_dim);
  tensors.bias("mm.0.bias", v.projection_dim);
  tensors.matrix(last + ".weight", v.projection_dim, v.projection_dim);
  tensors.bias(last + ".bias", v.projection_dim);
  if (v.has_norms) {
    add_norm("mm.1", v.projection_dim, tensors);
    add_norm("mm.4", v.projection_dim, tensors);
  }
  return plan;
}

GgufPlan plan_tiny_idefics3(const TinyIdefics3& v) {
  GgufPlan plan = plan_keys(v, "idefics3");
  plan.keys.emplace_back("clip.use_gelu", true);
  plan.keys.emplace_back("clip.vision.projector.scale_factor", u32(v.scale_factor));
  if (v.longest_edge > 0) {
    plan.keys.emplace_back("clip.vision.preproc_image_size", u32(v.longest_edge));
  }
  TensorList tensors(plan, v.type, /*scale=*/1.0F);
  add_tower(v, /*has_class=*/false, /*swaps_ffn=*/false, tensors);
  tensors.bias("v.patch_embd.bias", v.n_embd);
  add_norm("v.post_ln", v.n_embd, tensors);
  tensors.matrix("mm.model.fc.weight", int64_t{v.n_embd} * v.scale_factor * v.scale_factor,
                 v.projection_dim);
  return plan;
}

void write_tiny_llava(const TinyLlava& vision, const std::string& path,
                      const GgufMutations& mutations) {
  write_gguf(plan_tiny_llava(vision), mutations, path);
}

void write_tiny_idefics3(const TinyIdefics3& vision, const std::string& path,
                         const GgufMutations& mutations) {
  write_gguf(plan_tiny_idefics3(vision), mutations, path);
}

std::vector<std::string> idefics3_tokens(int n_side) {
  std::vector<std::string> tokens = {"\n\n", "<fake_token_around_image>", "<global-img>"};
  for (int row = 1; row <= n_side; ++row) {
    for (int col = 1; col <= n_side; ++col) {
      tokens.push_back(fmt::format("<row_{}_col_{}>", row, col));
    }
  }
  return tokens;
}

}  // namespace plateau::synth

#include "synth/tiny_gguf.h"

#include <cmath>
#include <vector>

#include "base/check.h"
#include "synth/tensor_list.h"
#include "synth/tiny_vocab.h"

namespace plateau::synth {
namespace {

uint32_t u32(int value) { return static_cast<uint32_t>(value); }

std::vector<int32_t> rope_sections_of(const TinyTextModel& m) {
  if (m.rope_sections != std::array<int32_t, 4>{}) {
    return {m.rope_sections.begin(), m.rope_sections.end()};
  }
  const int32_t n_pairs = m.head_dim / 2, n_t = n_pairs / 4, n_h = (n_pairs - n_t) / 2;
  return {n_t, n_h, n_pairs - n_t - n_h, 0};
}

void add_decoder_layer(const TinyTextModel& m, const std::string& block, TensorList& tensors) {
  const int64_t n_q = int64_t{m.n_head} * m.head_dim;
  const int64_t n_kv = int64_t{m.n_head_kv} * m.head_dim;
  const bool qk_norm = m.arch == "qwen3";
  const float qk_gain = qk_norm ? 1.0F : m.qk_gain;  // a norm would undo the gain of the matrices

  tensors.norm(block + "attn_norm.weight", m.n_embd);
  tensors.matrix(block + "attn_q.weight", m.n_embd, n_q, qk_gain);
  tensors.matrix(block + "attn_k.weight", m.n_embd, n_kv, qk_gain);
  tensors.matrix(block + "attn_v.weight", m.n_embd, n_kv);
  tensors.matrix(block + "attn_output.weight", n_q, m.n_embd);
  if (m.arch == "qwen2" || m.arch == "qwen2vl") {
    tensors.bias(block + "attn_q.bias", n_q);
    tensors.bias(block + "attn_k.bias", n_kv);
    tensors.bias(block + "attn_v.bias", n_kv);
  }
  if (qk_norm) {
    tensors.norm(block + "attn_q_norm.weight", m.head_dim, m.qk_gain);
    tensors.norm(block + "attn_k_norm.weight", m.head_dim, m.qk_gain);
  }
  tensors.norm(block + "ffn_norm.weight", m.n_embd);
  tensors.matrix(block + "ffn_gate.weight", m.n_embd, m.n_ff);
  tensors.matrix(block + "ffn_up.weight", m.n_embd, m.n_ff);
  tensors.matrix(block + "ffn_down.weight", m.n_ff, m.n_embd);
}

void add_tower_layer(const TinyVision& v, const std::string& block, TensorList& tensors) {
  const auto linear = [&](const std::string& name, int n_in, int n_out, bool bias) {
    tensors.matrix(block + name + ".weight", n_in, n_out);
    if (bias) tensors.bias(block + name + ".bias", n_out);
  };
  for (const char* name : {"attn_q", "attn_k", "attn_v"}) {
    linear(name, v.n_embd, v.n_embd, /*bias=*/!v.rms_qk_norm);
  }
  linear("attn_out", v.n_embd, v.n_embd, /*bias=*/true);
  linear("ffn_up", v.n_embd, v.n_ff, /*bias=*/true);
  linear("ffn_down", v.n_ff, v.n_embd, /*bias=*/true);
  for (const char* name : {"ln1", "ln2"}) {
    tensors.norm(block + name + ".weight", v.n_embd);
    if (!v.rms_qk_norm) tensors.bias(block + name + ".bias", v.n_embd);
  }
  if (v.rms_qk_norm) {
    tensors.norm(block + "attn_q_norm.weight", v.n_embd);
    tensors.norm(block + "attn_k_norm.weight", v.n_embd);
  }
  for (const char* name : {"ls1", "ls2"}) {  // layer scale
    tensors.vector(block + name + ".weight", v.n_embd, 0.5F, 0.1F);
  }
}

}  // namespace

int tokens_per_tile(const TinyVision& vision) {
  const int side = vision.tile / vision.patch / vision.scale_factor;
  return side * side;
}

GgufPlan plan_tiny_text(const TinyTextModel& m) {
  if (m.arch != "qwen3" && m.arch != "qwen2" && m.arch != "qwen2vl" && m.arch != "llama") {
    throw_error(ErrorCode::kInvalidArgument,
                "[tiny_gguf] expected qwen3, qwen2, qwen2vl or llama, got {}", m.arch);
  }
  const TinyVocab vocab = make_tiny_vocab(m.n_vocab, m.extra_tokens);
  const int64_t n_vocab = static_cast<int64_t>(vocab.tokens.size());
  GgufPlan plan;
  plan.seed = m.seed;
  const std::string arch = m.arch + '.';
  plan.keys = {
      {"general.architecture", m.arch},
      {"general.name", "tiny random " + m.arch},
      {arch + "context_length", u32(m.n_ctx_train)},
      {arch + "embedding_length", u32(m.n_embd)},
      {arch + "block_count", u32(m.n_layer)},
      {arch + "feed_forward_length", u32(m.n_ff)},
      {arch + "attention.head_count", u32(m.n_head)},
      {arch + "attention.head_count_kv", u32(m.n_head_kv)},
      {arch + "attention.key_length", u32(m.head_dim)},
      {arch + "attention.value_length", u32(m.head_dim)},
      {arch + "attention.layer_norm_rms_epsilon", m.rms_eps},
      {arch + "rope.freq_base", m.rope_freq_base},
      {"tokenizer.ggml.model", std::string("gpt2")},
      {"tokenizer.ggml.pre", std::string("qwen2")},
      {"tokenizer.ggml.tokens", vocab.tokens},
      {"tokenizer.ggml.token_type", vocab.types},
      {"tokenizer.ggml.merges", vocab.merges},
      {"tokenizer.ggml.eos_token_id", vocab.end_of_turn},
      {"tokenizer.ggml.bos_token_id", vocab.end_of_text},
      {"tokenizer.ggml.padding_token_id", vocab.end_of_text},
      {"tokenizer.ggml.add_bos_token", false},
  };
  if (m.arch == "llama") plan.keys.emplace_back(arch + "rope.dimension_count", u32(m.head_dim));
  if (m.arch == "qwen2vl") {
    plan.keys.emplace_back(arch + "rope.dimension_sections", rope_sections_of(m));
  }
  if (m.chat_template) {
    plan.keys.emplace_back("tokenizer.chat_template", std::string(kTinyChatTemplate));
  }

  TensorList tensors(plan, m.type, m.scale);
  // A tied embedding is also the output: rows of length 1 keep the logits near 1.
  const float embd_deviation = m.tied ? 1.0F / std::sqrt(static_cast<float>(m.n_embd)) : 1.0F;
  tensors.add({.name = "token_embd.weight",
               .ne = {m.n_embd, n_vocab},
               .type = m.type,
               .deviation = embd_deviation});
  for (int il = 0; il < m.n_layer; ++il) {
    add_decoder_layer(m, fmt::format("blk.{}.", il), tensors);
  }
  tensors.norm("output_norm.weight", m.n_embd);
  if (!m.tied) tensors.matrix("output.weight", m.n_embd, n_vocab);
  return plan;
}

GgufPlan plan_tiny_vision(const TinyVision& v) {
  GgufPlan plan;
  plan.seed = v.seed;
  plan.keys = {
      {"general.architecture", std::string("clip")},
      {"general.name", std::string("tiny random internvl")},
      {"general.type", std::string("mmproj")},
      {"general.file_type", uint32_t{v.type == GGML_TYPE_F32 ? 0U : 1U}},
      {"clip.has_vision_encoder", true},
      {"clip.projector_type", std::string("internvl")},
      {"clip.use_gelu", true},
      {"clip.vision.embedding_length", u32(v.n_embd)},
      {"clip.vision.feed_forward_length", u32(v.n_ff)},
      {"clip.vision.block_count", u32(v.n_layer)},
      {"clip.vision.projection_dim", u32(v.projection_dim)},
      {"clip.vision.image_size", u32(v.tile)},
      {"clip.vision.patch_size", u32(v.patch)},
      {"clip.vision.attention.head_count", u32(v.n_head)},
      {"clip.vision.attention.layer_norm_epsilon", v.eps},
      {"clip.vision.projector.scale_factor", u32(v.scale_factor)},
      {"clip.vision.preproc_min_tiles", u32(v.min_tiles)},
      {"clip.vision.preproc_max_tiles", u32(v.max_tiles)},
      {"clip.vision.image_mean", std::vector<float>{0.485F, 0.456F, 0.406F}},
      {"clip.vision.image_std", std::vector<float>{0.229F, 0.224F, 0.225F}},
  };

  const int64_t n_side = v.tile / v.patch;
  TensorList tensors(plan, v.type, /*scale=*/1.0F);
  tensors.add({.name = "v.patch_embd.weight",
               .ne = {v.patch, v.patch, 3, v.n_embd},
               .type = ggml_is_quantized(v.type) ? GGML_TYPE_F16 : v.type,  // rows are too short
               .deviation = 1.0F / std::sqrt(3.0F * static_cast<float>(v.patch * v.patch))});
  tensors.bias("v.patch_embd.bias", v.n_embd);
  tensors.vector("v.class_embd", v.n_embd, 0.0F, 1.0F);
  tensors.add({.name = "v.position_embd.weight",
               .ne = {v.n_embd, n_side * n_side + 1},
               .deviation = 0.5F,
               .rotate_rows = v.class_first ? 0 : 1});
  for (int il = 0; il < v.n_layer; ++il) {
    add_tower_layer(v, fmt::format("v.blk.{}.", il), tensors);
  }
  const int64_t n_shuffled = int64_t{v.n_embd} * v.scale_factor * v.scale_factor;
  const int64_t n_mid = v.n_mid == 0 ? v.projection_dim : v.n_mid;
  tensors.norm("mm.model.mlp.0.weight", n_shuffled);
  tensors.bias("mm.model.mlp.0.bias", n_shuffled);
  tensors.matrix("mm.model.mlp.1.weight", n_shuffled, n_mid);
  tensors.bias("mm.model.mlp.1.bias", n_mid);
  tensors.matrix("mm.model.mlp.3.weight", n_mid, v.projection_dim);
  tensors.bias("mm.model.mlp.3.bias", v.projection_dim);
  return plan;
}

GgufPlan plan_tiny_qwen_vision(const TinyQwenVision& v) {
  GgufPlan plan;
  plan.seed = v.seed;
  plan.keys = {
      {"general.architecture", std::string("clip")},
      {"general.name", std::string("tiny random qwen2.5vl")},
      {"general.type", std::string("mmproj")},
      {"general.file_type", uint32_t{v.type == GGML_TYPE_F32 ? 0U : 1U}},
      {"clip.has_vision_encoder", true},
      {"clip.projector_type", std::string("qwen2.5vl_merger")},
      {"clip.use_silu", true},
      {"clip.vision.embedding_length", u32(v.n_embd)},
      {"clip.vision.feed_forward_length", u32(v.n_ff)},
      {"clip.vision.block_count", u32(v.n_layer)},
      {"clip.vision.projection_dim", u32(v.projection_dim)},
      {"clip.vision.image_size", uint32_t{560}},
      {"clip.vision.patch_size", u32(v.patch)},
      {"clip.vision.attention.head_count", u32(v.n_head)},
      {"clip.vision.attention.layer_norm_epsilon", v.eps},
      {"clip.vision.n_wa_pattern", u32(v.full_every)},
      {"clip.vision.image_mean", std::vector<float>{0.481F, 0.458F, 0.408F}},
      {"clip.vision.image_std", std::vector<float>{0.269F, 0.261F, 0.276F}},
  };
  TensorList tensors(plan, v.type, /*scale=*/1.0F);
  for (const char* name : {"v.patch_embd.weight", "v.patch_embd.weight.1"}) {
    tensors.add({.name = name,
                 .ne = {v.patch, v.patch, 3, v.n_embd},
                 .type = ggml_is_quantized(v.type) ? GGML_TYPE_F16 : v.type,  // rows are too short
                 .deviation = 1.0F / std::sqrt(6.0F * static_cast<float>(v.patch * v.patch))});
  }
  for (int il = 0; il < v.n_layer; ++il) {
    const std::string block = fmt::format("v.blk.{}.", il);
    const auto linear = [&](const char* name, int n_in, int n_out) {
      tensors.matrix(block + name + ".weight", n_in, n_out);
      tensors.bias(block + name + ".bias", n_out);
    };
    tensors.norm(block + "ln1.weight", v.n_embd);
    tensors.norm(block + "ln2.weight", v.n_embd);
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_out"}) {
      linear(name, v.n_embd, v.n_embd);
    }
    linear("ffn_gate", v.n_embd, v.n_ff);
    linear("ffn_up", v.n_embd, v.n_ff);
    linear("ffn_down", v.n_ff, v.n_embd);
  }
  tensors.norm("v.post_ln.weight", v.n_embd);
  const int64_t n_merged = int64_t{4} * v.n_embd;
  tensors.matrix("mm.0.weight", n_merged, n_merged);
  tensors.bias("mm.0.bias", n_merged);
  tensors.matrix("mm.2.weight", n_merged, v.projection_dim);
  tensors.bias("mm.2.bias", v.projection_dim);
  return plan;
}

void write_tiny_text(const TinyTextModel& model, const std::string& path,
                     const GgufMutations& mutations) {
  write_gguf(plan_tiny_text(model), mutations, path);
}

void write_tiny_vision(const TinyVision& vision, const std::string& path,
                       const GgufMutations& mutations) {
  write_gguf(plan_tiny_vision(vision), mutations, path);
}

void write_tiny_qwen_vision(const TinyQwenVision& vision, const std::string& path,
                            const GgufMutations& mutations) {
  write_gguf(plan_tiny_qwen_vision(vision), mutations, path);
}

TinyTextModel half_billion_shape() {
  return {.arch = "qwen2",
          .n_layer = 24,
          .n_embd = 896,
          .n_head = 14,
          .n_head_kv = 2,
          .head_dim = 64,
          .n_ff = 4864,
          .n_vocab = 151936,
          .tied = true,
          .type = GGML_TYPE_Q8_0};
}

}  // namespace plateau::synth

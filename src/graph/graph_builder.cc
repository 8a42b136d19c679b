#include "graph/graph_builder.h"

#include <array>
#include <cmath>

#include "base/check.h"

namespace plateau::graph {

size_t max_graph_nodes(const model::ModelConfig& config) {
  constexpr size_t kPerLayer = 128;
  constexpr size_t kAround = 128;
  return kPerLayer * static_cast<size_t>(config.n_layer) + kAround;
}

int n_position_components(const model::ModelConfig& config) { return config.has_mrope() ? 4 : 1; }

GraphBuilder::GraphBuilder(const model::LanguageModel& model, const kv::KvCache& cache,
                           const BlockShape& shape)
    : config_(model.config()), weights_(model.weights()), cache_(cache), shape_(shape) {
  PLATEAU_CHECK(shape.n_rows >= 1 && shape.n_cached >= 0);
  PLATEAU_CHECK(shape.n_cached + shape.n_rows <= cache.n_slot());
  const size_t n_nodes = max_graph_nodes(config_);
  const size_t mem_size =
      ggml_tensor_overhead() * n_nodes + ggml_graph_overhead_custom(n_nodes, /*grads=*/false);
  block_.context.reset(ggml_init({mem_size, /*mem_buffer=*/nullptr, /*no_alloc=*/true}));
  PLATEAU_CHECK(block_.context != nullptr);
  ctx_ = block_.context.get();
  block_.graph = ggml_new_graph_custom(ctx_, n_nodes, /*grads=*/false);

  const auto input = [](ggml_tensor* tensor, const char* name) {
    ggml_set_input(tensor);
    ggml_set_name(tensor, name);
    return tensor;
  };
  block_.embeddings =
      input(ggml_new_tensor_2d(ctx_, GGML_TYPE_F32, config_.n_embd, shape.n_rows), "inp_embd");
  const int64_t n_positions = int64_t{shape.n_rows} * n_position_components(config_);
  block_.positions = input(ggml_new_tensor_1d(ctx_, GGML_TYPE_I32, n_positions), "inp_pos");
  block_.slots = input(ggml_new_tensor_1d(ctx_, GGML_TYPE_I64, shape.n_rows), "inp_slots");
  block_.mask =
      input(ggml_new_tensor_2d(ctx_, GGML_TYPE_F16, shape.n_attended(), shape.n_rows), "inp_mask");
  if (shape.want_logits) {
    block_.last_row = input(ggml_new_tensor_1d(ctx_, GGML_TYPE_I32, 1), "inp_out_ids");
  }
}

ggml_tensor* GraphBuilder::name(ggml_tensor* x, const char* name, int il) {
  if (il < 0) {
    ggml_set_name(x, name);
  } else {
    ggml_format_name(x, "%s-%d", name, il);
  }
  return x;
}

ggml_tensor* GraphBuilder::layer_weight(const std::string& name, int il) const {
  return weights_.get(fmt::format("blk.{}.{}", il, name));
}

ggml_tensor* GraphBuilder::rms_norm(ggml_tensor* x, const std::string& name, int il) {
  return ggml_mul(ctx_, ggml_rms_norm(ctx_, x, config_.rms_eps),
                  layer_weight(name + ".weight", il));
}

ggml_tensor* GraphBuilder::linear(ggml_tensor* x, const std::string& name, int il) {
  ggml_tensor* y = ggml_mul_mat(ctx_, layer_weight(name + ".weight", il), x);
  ggml_tensor* bias = weights_.find(fmt::format("blk.{}.{}.bias", il, name));
  return bias != nullptr ? ggml_add(ctx_, y, bias) : y;
}

ggml_tensor* GraphBuilder::split_heads(ggml_tensor* x, int n) {
  return ggml_reshape_3d(ctx_, x, config_.head_dim, n, shape_.n_rows);
}

ggml_tensor* GraphBuilder::rope_1d(ggml_tensor* x, int mode) {
  return ggml_rope_ext(ctx_, x, block_.positions, /*freq_factors=*/nullptr, config_.head_dim, mode,
                       config_.n_ctx_train, config_.rope_freq_base, config_.rope_freq_scale,
                       /*ext_factor=*/0.0f, /*attn_factor=*/1.0f,
                       /*beta_fast=*/32.0f, /*beta_slow=*/1.0f);
}

ggml_tensor* GraphBuilder::rope_multi(ggml_tensor* x) {
  std::array<int, 4> sections = config_.rope_sections;
  return ggml_rope_multi(ctx_, x, block_.positions, /*freq_factors=*/nullptr, config_.head_dim,
                         sections.data(), GGML_ROPE_TYPE_MROPE, config_.n_ctx_train,
                         config_.rope_freq_base, config_.rope_freq_scale, /*ext_factor=*/0.0f,
                         /*attn_factor=*/1.0f, /*beta_fast=*/32.0f, /*beta_slow=*/1.0f);
}

void GraphBuilder::store(ggml_tensor* k, ggml_tensor* v, int il) {
  const auto store_rows = [&](ggml_tensor* arena, ggml_tensor* rows) {
    // [head_dim, n_head_kv, n_rows] -> [head_dim, n_rows, n_head_kv]
    ggml_tensor* by_head = ggml_permute(ctx_, rows, 0, 2, 1, 3);
    ggml_build_forward_expand(block_.graph, ggml_set_rows(ctx_, arena, by_head, block_.slots));
  };
  store_rows(cache_.k(il), k);
  store_rows(cache_.v(il), v);
}

ggml_tensor* GraphBuilder::attended(ggml_tensor* arena) const {
  return ggml_view_3d(ctx_, arena, config_.head_dim, shape_.n_attended(), config_.n_head_kv,
                      arena->nb[1], arena->nb[2], /*offset=*/0);
}

void GraphBuilder::observe(ggml_tensor* q, int il) {
  if (shape_.policy == nullptr) return;
  kv::SignalInputs inputs = {.context = ctx_,
                             .k = attended(cache_.k(il)),
                             .v = attended(cache_.v(il)),
                             .n_held = shape_.n_held()};
  if (shape_.policy->observes()) {
    const int first = shape_.n_rows - shape_.n_observed;
    PLATEAU_CHECK(shape_.n_observed >= 1 && first >= 0);
    ggml_build_forward_expand(block_.graph, q);
    ggml_tensor* rows = ggml_view_3d(ctx_, q, q->ne[0], q->ne[1], shape_.n_observed, q->nb[1],
                                     q->nb[2], static_cast<size_t>(first) * q->nb[2]);
    inputs.q = ggml_permute(ctx_, rows, 0, 2, 1, 3);
    inputs.mask = ggml_view_2d(ctx_, block_.mask, block_.mask->ne[0], shape_.n_observed,
                               block_.mask->nb[1], static_cast<size_t>(first) * block_.mask->nb[1]);
  }
  block_.signals.push_back(shape_.policy->build_signals(inputs));
  const int n_before = ggml_graph_n_nodes(block_.graph);
  for (ggml_tensor* signal : block_.signals.back()) {
    ggml_set_output(signal);
    ggml_build_forward_expand(block_.graph, signal);
  }
  for (int i = n_before; i < ggml_graph_n_nodes(block_.graph); ++i) {
    name(ggml_graph_node(block_.graph, i), "signal", il);
  }
}

ggml_tensor* GraphBuilder::attend(ggml_tensor* q, int il) {
  ggml_tensor* out = ggml_flash_attn_ext(
      ctx_, ggml_permute(ctx_, q, 0, 2, 1, 3), attended(cache_.k(il)), attended(cache_.v(il)),
      block_.mask, 1.0f / std::sqrt(static_cast<float>(config_.head_dim)), /*max_bias=*/0.0f,
      /*logit_softcap=*/0.0f);
  ggml_flash_attn_ext_set_prec(out, GGML_PREC_F32);
  name(out, "__fattn__", il);
  out = ggml_reshape_2d(ctx_, out, int64_t{config_.head_dim} * config_.n_head, shape_.n_rows);
  return name(out, "kqv_out", il);
}

ggml_tensor* GraphBuilder::feed_forward(ggml_tensor* x, int il) {
  ggml_tensor* up = name(linear(x, "ffn_up", il), "ffn_up", il);
  ggml_tensor* gate = name(linear(x, "ffn_gate", il), "ffn_gate", il);
  ggml_tensor* hidden = name(ggml_swiglu_split(ctx_, gate, up), "ffn_swiglu", il);
  return name(linear(hidden, "ffn_down", il), "ffn_out", il);
}

ggml_tensor* GraphBuilder::take_last_row(ggml_tensor* x) {
  return ggml_get_rows(ctx_, x, block_.last_row);
}

void GraphBuilder::output(ggml_tensor* x) {
  ggml_tensor* normed =
      ggml_mul(ctx_, ggml_rms_norm(ctx_, x, config_.rms_eps), weights_.get("output_norm.weight"));
  name(normed, "result_norm", -1);
  ggml_tensor* matrix = weights_.find("output.weight");
  if (matrix == nullptr) matrix = weights_.get("token_embd.weight");  // tied
  block_.logits = name(ggml_mul_mat(ctx_, matrix, normed), "result_output", -1);
  ggml_set_output(block_.logits);
  ggml_build_forward_expand(block_.graph, block_.logits);
}

}  // namespace plateau::graph

// The language model of Qwen2-VL and Qwen2.5-VL: Qwen2 (pre-norm, grouped-query attention with a
// bias on query, key and value, SwiGLU) with M-RoPE.
#include "graph/decoder.h"

namespace plateau::graph {

void build_qwen2vl(GraphBuilder& g) {
  const model::ModelConfig& config = g.config();
  ggml_tensor* x = g.embeddings();  // [n_embd, n_rows]
  for (int il = 0; il < config.n_layer; ++il) {
    ggml_tensor* residual = x;
    x = g.name(g.rms_norm(x, "attn_norm", il), "attn_norm", il);

    ggml_tensor* q = g.split_heads(g.linear(x, "attn_q", il), config.n_head);
    ggml_tensor* k = g.split_heads(g.linear(x, "attn_k", il), config.n_head_kv);
    ggml_tensor* v = g.split_heads(g.linear(x, "attn_v", il), config.n_head_kv);
    q = g.name(g.rope_multi(q), "Qcur", il);
    k = g.name(g.rope_multi(k), "Kcur", il);
    g.name(v, "Vcur", il);

    g.store(k, v, il);
    g.observe(q, il);
    if (g.is_last_layer(il) && !g.shape().want_logits) return;
    x = g.name(g.linear(g.attend(q, il), "attn_output", il), "attn_out", il);

    if (g.is_last_layer(il)) {
      x = g.take_last_row(x);
      residual = g.take_last_row(residual);
    }
    residual = x = g.name(g.add(x, residual), "ffn_inp", il);
    x = g.name(g.rms_norm(x, "ffn_norm", il), "ffn_norm", il);
    x = g.feed_forward(x, il);
    x = g.name(g.add(x, residual), "l_out", il);
  }
  g.output(x);
}

}  // namespace plateau::graph

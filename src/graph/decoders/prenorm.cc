#include "graph/decoders/prenorm.h"

namespace plateau::graph {

QueryKeyValue project(GraphBuilder& g, ggml_tensor* x, int il) {
  const model::ModelConfig& config = g.config();
  return {.q = g.split_heads(g.linear(x, "attn_q", il), config.n_head),
          .k = g.split_heads(g.linear(x, "attn_k", il), config.n_head_kv),
          .v = g.split_heads(g.linear(x, "attn_v", il), config.n_head_kv)};
}

void build_prenorm(GraphBuilder& g, ProjectRows project_rows) {
  ggml_tensor* x = g.embeddings();  // [n_embd, n_rows]
  for (int il = 0; il < g.config().n_layer; ++il) {
    ggml_tensor* residual = x;
    x = g.name(g.rms_norm(x, "attn_norm", il), "attn_norm", il);

    const QueryKeyValue row = project_rows(g, x, il);
    g.name(row.q, "Qcur", il);
    g.name(row.k, "Kcur", il);
    g.name(row.v, "Vcur", il);
    g.store(row.k, row.v, il);
    g.observe(row.q, il);
    if (g.is_last_layer(il) && !g.shape().want_logits) return;
    x = g.name(g.linear(g.attend(row.q, il), "attn_output", il), "attn_out", il);

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

// The decoder that Llama's descendants share: pre-norm, grouped-query attention, SwiGLU. They
// differ in how query, key and value are made of a normed row; each says so in a file of its own.
#pragma once

#include "graph/graph_builder.h"

namespace plateau::graph {

/// Rotated query and key, and value: [head_dim, n_head or n_head_kv, n_rows].
struct QueryKeyValue {
  ggml_tensor* q = nullptr;
  ggml_tensor* k = nullptr;
  ggml_tensor* v = nullptr;
};

/// x: the rows after attn_norm, [n_embd, n_rows].
using ProjectRows = QueryKeyValue (*)(GraphBuilder& g, ggml_tensor* x, int il);

/// The projections of `x` by attn_q, attn_k and attn_v (with biases where the file has them), in
/// heads, not rotated.
QueryKeyValue project(GraphBuilder& g, ggml_tensor* x, int il);

/// All layers and the output.
void build_prenorm(GraphBuilder& g, ProjectRows project_rows);

}  // namespace plateau::graph

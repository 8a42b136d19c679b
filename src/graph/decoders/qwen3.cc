// Qwen3, the language model of InternVL3.5: the shared decoder with an RMS norm on each head's
// query and key before the rotation.
#include "graph/decoder.h"
#include "graph/decoders/prenorm.h"

namespace plateau::graph {

void build_qwen3(GraphBuilder& g) {
  build_prenorm(g, [](GraphBuilder& builder, ggml_tensor* x, int il) {
    QueryKeyValue row = project(builder, x, il);
    row.q = builder.name(builder.rms_norm(row.q, "attn_q_norm", il), "Qcur_normed", il);
    row.k = builder.name(builder.rms_norm(row.k, "attn_k_norm", il), "Kcur_normed", il);
    row.q = builder.rope(row.q);
    row.k = builder.rope(row.k);
    return row;
  });
}

}  // namespace plateau::graph

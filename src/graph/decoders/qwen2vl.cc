// The language model of Qwen2-VL and Qwen2.5-VL: Qwen2 with M-RoPE.
#include "graph/decoder.h"
#include "graph/decoders/prenorm.h"

namespace plateau::graph {

void build_qwen2vl(GraphBuilder& g) {
  build_prenorm(g, [](GraphBuilder& builder, ggml_tensor* x, int il) {
    QueryKeyValue row = project(builder, x, il);
    row.q = builder.rope_multi(row.q);
    row.k = builder.rope_multi(row.k);
    return row;
  });
}

}  // namespace plateau::graph

// Qwen2, the language model of InternVL2.5 and InternVL3: the shared decoder with biases on query,
// key and value.
#include "graph/decoder.h"
#include "graph/decoders/prenorm.h"

namespace plateau::graph {

void build_qwen2(GraphBuilder& g) {
  build_prenorm(g, [](GraphBuilder& builder, ggml_tensor* x, int il) {
    QueryKeyValue row = project(builder, x, il);
    row.q = builder.rope(row.q);
    row.k = builder.rope(row.k);
    return row;
  });
}

}  // namespace plateau::graph

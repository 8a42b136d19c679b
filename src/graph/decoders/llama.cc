// Llama and what is built like it (SmolLM2, Mistral): the shared decoder without biases, the rotary
// embedding's pairs side by side.
#include "graph/decoder.h"
#include "graph/decoders/prenorm.h"

namespace plateau::graph {

void build_llama(GraphBuilder& g) {
  build_prenorm(g, [](GraphBuilder& builder, ggml_tensor* x, int il) {
    QueryKeyValue row = project(builder, x, il);
    row.q = builder.rope_interleaved(row.q);
    row.k = builder.rope_interleaved(row.k);
    return row;
  });
}

}  // namespace plateau::graph

// One decoder architecture: how a block's graph is put together from a GraphBuilder's steps.
#pragma once

#include "graph/graph_builder.h"

namespace plateau::graph {

/// Adds all layers to the builder's graph. Without logits, the last layer stops once its K and V
/// are stored: nothing reads further.
using BuildDecoder = void (*)(GraphBuilder& builder);

void build_llama(GraphBuilder& builder);
void build_qwen2(GraphBuilder& builder);
void build_qwen2vl(GraphBuilder& builder);
void build_qwen3(GraphBuilder& builder);

BuildDecoder find_decoder(model::Architecture architecture);

}  // namespace plateau::graph

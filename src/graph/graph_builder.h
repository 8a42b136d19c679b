// Builds the ggml graph of one block: named norm, projection, rope, attention and feed-forward
// steps that every decoder is written with. Tensor names are llama.cpp's, so that both can be
// compared.
//
// A block's rows are its tokens in order, then its proxy queries. Row i attends to the cached slots
// and to the rows up to itself; its K and V are stored in slot n_cached + i, where those of proxies
// are overwritten by what comes next.
#pragma once

#include <string>
#include <vector>

#include "ggml-cpp.h"
#include "kv/kv_cache.h"
#include "kv/policy.h"
#include "model/language_model.h"

namespace plateau::graph {

struct BlockShape {
  int n_rows = 0;            // rows computed
  int n_cached = 0;          // slots filled before this block
  bool want_logits = false;  // of the last row that is no proxy
  int n_proxy = 0;           // of the rows, the last ones, which are not kept
  // Eviction signals are computed when there is a policy; the last n_observed rows observe.
  const kv::Policy* policy = nullptr;
  int n_observed = 0;

  int n_held() const { return n_cached + n_rows - n_proxy; }
  int n_attended() const { return kv::padded_slots(n_cached + n_rows); }
};

/// One block's graph and the tensors that are set before and read after it runs.
struct BlockGraph {
  ggml_context_ptr context;
  ggml_cgraph* graph = nullptr;
  ggml_tensor* embeddings = nullptr;               // in: f32 [n_embd, n_rows]
  ggml_tensor* positions = nullptr;                // in: i32 [n_rows]; M-RoPE: [4 * n_rows]
  ggml_tensor* slots = nullptr;                    // in: i64 [n_rows], where K and V are stored
  ggml_tensor* mask = nullptr;                     // in: f16 [n_attended, n_rows], 0 or -inf
  ggml_tensor* last_row = nullptr;                 // in: i32 [1]; null without logits
  ggml_tensor* logits = nullptr;                   // out: f32 [n_vocab, 1]; null without logits
  std::vector<std::vector<ggml_tensor*>> signals;  // out: per layer, f32; empty without a policy
};

class GraphBuilder {
 public:
  GraphBuilder(const model::LanguageModel& model, const kv::KvCache& cache,
               const BlockShape& shape);

  const model::ModelConfig& config() const { return config_; }
  const BlockShape& shape() const { return shape_; }
  bool is_last_layer(int il) const { return il == config_.n_layer - 1; }
  ggml_tensor* embeddings() const { return block_.embeddings; }

  /// RMS norm with weight `name`, as "blk.{il}.{name}.weight".
  ggml_tensor* rms_norm(ggml_tensor* x, const std::string& name, int il);
  /// x -> W x (+ b where the file has a bias): [n_in, n] -> [n_out, n].
  ggml_tensor* linear(ggml_tensor* x, const std::string& name, int il);
  /// [head_dim * n, n_rows] -> [head_dim, n, n_rows].
  ggml_tensor* split_heads(ggml_tensor* x, int n);
  /// Rotary embedding, NEOX pairing, at the rows' positions: [head_dim, n, n_rows].
  ggml_tensor* rope(ggml_tensor* x) { return rope_1d(x, GGML_ROPE_TYPE_NEOX); }
  /// The same with NORM pairing: neighbours, not halves.
  ggml_tensor* rope_interleaved(ggml_tensor* x) { return rope_1d(x, GGML_ROPE_TYPE_NORMAL); }
  /// M-RoPE (arXiv:2409.12191): the same, where each section of the frequency pairs turns with its
  /// component of the position.
  ggml_tensor* rope_multi(ggml_tensor* x);
  /// Stores the rows' K and V in the cache: [head_dim, n_head_kv, n_rows].
  void store(ggml_tensor* k, ggml_tensor* v, int il);
  /// Adds the eviction policy's signals, if any: q [head_dim, n_head, n_rows], rotated.
  /// REQUIRES: store() of this layer before.
  void observe(ggml_tensor* q, int il);
  /// Attention over the cache: q [head_dim, n_head, n_rows] -> [head_dim * n_head, n_rows].
  /// REQUIRES: store() of this layer before.
  ggml_tensor* attend(ggml_tensor* q, int il);
  /// SwiGLU: down(silu(gate x) * up x).
  ggml_tensor* feed_forward(ggml_tensor* x, int il);
  ggml_tensor* add(ggml_tensor* a, ggml_tensor* b) { return ggml_add(ctx_, a, b); }
  /// The last row of [n, n_rows], as [n, 1].
  ggml_tensor* take_last_row(ggml_tensor* x);
  /// Final norm and output projection of [n_embd, 1]; becomes the block's logits.
  void output(ggml_tensor* x);

  /// Names `x` as llama.cpp does: "attn_norm-3", or "result_norm" for il < 0.
  ggml_tensor* name(ggml_tensor* x, const char* name, int il);

  BlockGraph finish() { return std::move(block_); }

 private:
  ggml_tensor* rope_1d(ggml_tensor* x, int mode);
  /// The slots of one arena that rows attend to: [head_dim, n_attended, n_head_kv].
  ggml_tensor* attended(ggml_tensor* arena) const;
  ggml_tensor* layer_weight(const std::string& name, int il) const;

  const model::ModelConfig& config_;
  const model::WeightMap& weights_;
  const kv::KvCache& cache_;
  BlockShape shape_;
  BlockGraph block_;
  ggml_context* ctx_ = nullptr;
};

/// Numbers per position in the graph: 1, or with M-RoPE 4 (t, h, w and an unused one, all rows'
/// first, then all rows' second, as ggml_rope_multi reads them).
int n_position_components(const model::ModelConfig& config);

/// Graph nodes that one block of this model can need at most.
size_t max_graph_nodes(const model::ModelConfig& config);

}  // namespace plateau::graph

#include "vision/towers/qwen25vl_graph.h"

#include <cmath>
#include <string>

#include "base/check.h"

namespace plateau::vision {
namespace {

constexpr float kRopeBase = 10000.0f;
constexpr size_t kNodesPerLayer = 64;  // with the leaves, which schedulers count, too
constexpr size_t kNodesAround = 64;

}  // namespace

size_t qwen25vl_max_nodes(const model::VisionConfig& config) {
  return kNodesPerLayer * static_cast<size_t>(config.n_layer) + kNodesAround;
}

class Qwen25VlGraphs::Builder {
 public:
  Builder(const Qwen25VlGraphs& graphs, PatchRange range, int n_layers)
      : config_(graphs.config_),
        weights_(graphs.weights_),
        stream_(graphs.stream_),
        range_(range),
        head_dim_(config_.head_dim()) {
    PLATEAU_CHECK(range.n > 0 && range.first + range.n <= stream_.x->ne[1]);
    const size_t n_nodes = kNodesPerLayer * static_cast<size_t>(n_layers) + kNodesAround;
    result_.context.reset(ggml_init(
        {ggml_tensor_overhead() * n_nodes + ggml_graph_overhead_custom(n_nodes, /*grads=*/false),
         /*mem_buffer=*/nullptr, /*no_alloc=*/true}));
    PLATEAU_CHECK(result_.context != nullptr);
    ctx_ = result_.context.get();
    result_.graph = ggml_new_graph_custom(ctx_, n_nodes, /*grads=*/false);
    x_ = ggml_view_2d(ctx_, stream_.x, config_.n_embd, range.n, stream_.x->nb[1],
                      static_cast<size_t>(range.first) * stream_.x->nb[1]);
  }

  StreamGraph embed(int n_frames) {
    const int64_t n_values = int64_t{3} * config_.patch_size * config_.patch_size;
    for (int i = 0; i < n_frames; ++i) {
      result_.patches[i] = ggml_new_tensor_2d(ctx_, GGML_TYPE_F32, n_values, range_.n);
      ggml_set_input(result_.patches[i]);
    }
    const auto kernel = [&](const char* name) {
      return ggml_reshape_2d(ctx_, weights_.get(name), n_values, config_.n_embd);
    };
    ggml_tensor* y = ggml_mul_mat(ctx_, kernel("v.patch_embd.weight"), result_.patches[0]);
    ggml_tensor* z =
        ggml_mul_mat(ctx_, kernel("v.patch_embd.weight.1"), result_.patches[n_frames - 1]);
    return finish(ggml_cpy(ctx_, ggml_add(ctx_, y, z), x_));
  }

  StreamGraph windows(int64_t n_windows, int il_begin, int il_end) {
    add_positions();
    for (int il = il_begin; il < il_end; ++il) {
      const std::string prefix = prefix_of(il);
      ggml_tensor* y = norm(prefix + "ln1");
      // [head_dim, n_head, n] -> [head_dim, patches of a window, n_head, n_windows]
      const auto by_window = [&](ggml_tensor* t) {
        t = ggml_reshape_4d(ctx_, t, head_dim_, config_.n_head, range_.n / n_windows, n_windows);
        return ggml_permute(ctx_, t, 0, 2, 1, 3);
      };
      ggml_tensor* q = rope(by_head(linear(y, prefix + "attn_q")));
      ggml_tensor* k = rope(by_head(linear(y, prefix + "attn_k")));
      ggml_tensor* v = by_head(linear(y, prefix + "attn_v"));
      add_attention(by_window(q), by_window(k), by_window(v), prefix);
      add_ffn(prefix);
    }
    return finish(x_);
  }

  StreamGraph keys_values(int il) {
    add_positions();
    const std::string prefix = prefix_of(il);
    ggml_tensor* y = norm(prefix + "ln1");
    store(rope(by_head(linear(y, prefix + "attn_k"))), stream_.k);
    store(by_head(linear(y, prefix + "attn_v")), stream_.v);
    return std::move(result_);
  }

  StreamGraph queries(int il) {
    add_positions();
    const std::string prefix = prefix_of(il);
    ggml_tensor* q = rope(by_head(linear(norm(prefix + "ln1"), prefix + "attn_q")));
    add_attention(ggml_permute(ctx_, q, 0, 2, 1, 3), stream_.k, stream_.v, prefix);
    add_ffn(prefix);
    return finish(x_);
  }

  StreamGraph merge() {
    const int64_t n_merged = int64_t{config_.qwen25vl().merge} * config_.qwen25vl().merge;
    ggml_tensor* y =
        ggml_reshape_2d(ctx_, norm("v.post_ln"), config_.n_embd * n_merged, range_.n / n_merged);
    y = ggml_gelu_erf(ctx_, linear(y, "mm.0"));
    y = linear(y, "mm.2");
    ggml_set_output(y);
    result_.embeddings = y;
    return finish(y);
  }

 private:
  static std::string prefix_of(int il) { return fmt::format("v.blk.{}.", il); }

  StreamGraph finish(ggml_tensor* last) {
    ggml_build_forward_expand(result_.graph, last);
    return std::move(result_);
  }

  void add_positions() {
    result_.positions = ggml_new_tensor_1d(ctx_, GGML_TYPE_I32, 4 * range_.n);
    ggml_set_input(result_.positions);
  }

  ggml_tensor* linear(ggml_tensor* y, const std::string& name) {
    return ggml_add(ctx_, ggml_mul_mat(ctx_, weights_.get(name + ".weight"), y),
                    weights_.get(name + ".bias"));
  }

  ggml_tensor* norm(const std::string& name) {
    return ggml_mul(ctx_, ggml_rms_norm(ctx_, x_, config_.norm_eps),
                    weights_.get(name + ".weight"));
  }

  ggml_tensor* by_head(ggml_tensor* y) {
    return ggml_reshape_3d(ctx_, y, head_dim_, config_.n_head, range_.n);
  }

  /// Half of the pairs turn with y, half with x, each from the base frequency down.
  ggml_tensor* rope(ggml_tensor* y) {
    const int quarter = static_cast<int>(head_dim_) / 4;
    int sections[GGML_MROPE_SECTIONS] = {quarter, quarter, quarter, quarter};
    return ggml_rope_multi(ctx_, y, result_.positions, /*c=*/nullptr, 2 * quarter, sections,
                           GGML_ROPE_TYPE_VISION, /*n_ctx_orig=*/32768, kRopeBase,
                           /*freq_scale=*/1.0f, /*ext_factor=*/0.0f, /*attn_factor=*/1.0f,
                           /*beta_fast=*/32.0f, /*beta_slow=*/1.0f);
  }

  /// The branch's sum with the residual is written where the stream is.
  void add_to_stream(ggml_tensor* y) { x_ = ggml_add_inplace(ctx_, x_, y); }

  void add_attention(ggml_tensor* q, ggml_tensor* k, ggml_tensor* v, const std::string& prefix) {
    const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim_));
    ggml_tensor* y = ggml_flash_attn_ext(ctx_, q, k, v, /*mask=*/nullptr, scale,
                                         /*max_bias=*/0.0f, /*logit_softcap=*/0.0f);
    ggml_flash_attn_ext_set_prec(y, GGML_PREC_F32);
    y = ggml_reshape_2d(ctx_, y, config_.n_embd, range_.n);
    add_to_stream(linear(y, prefix + "attn_out"));
  }

  void add_ffn(const std::string& prefix) {
    ggml_tensor* y = norm(prefix + "ln2");
    ggml_tensor* gate = ggml_silu(ctx_, linear(y, prefix + "ffn_gate"));
    y = ggml_mul(ctx_, gate, linear(y, prefix + "ffn_up"));
    add_to_stream(linear(y, prefix + "ffn_down"));
  }

  /// y, [head_dim, n_head, n], to its rows of all: [head_dim, n_patch, n_head].
  void store(ggml_tensor* y, ggml_tensor* all) {
    ggml_tensor* rows = ggml_view_3d(ctx_, all, head_dim_, range_.n, config_.n_head, all->nb[1],
                                     all->nb[2], static_cast<size_t>(range_.first) * all->nb[1]);
    ggml_build_forward_expand(result_.graph,
                              ggml_cpy(ctx_, ggml_permute(ctx_, y, 0, 2, 1, 3), rows));
  }

  const model::VisionConfig& config_;
  const model::WeightMap& weights_;
  const PatchStream& stream_;
  PatchRange range_;
  int64_t head_dim_;
  StreamGraph result_;
  ggml_context* ctx_ = nullptr;
  ggml_tensor* x_ = nullptr;
};

StreamGraph Qwen25VlGraphs::embed(PatchRange range, int n_frames) const {
  return Builder(*this, range, 0).embed(n_frames);
}

StreamGraph Qwen25VlGraphs::windows(PatchRange range, int64_t n_windows, int il_begin,
                                    int il_end) const {
  return Builder(*this, range, il_end - il_begin).windows(n_windows, il_begin, il_end);
}

StreamGraph Qwen25VlGraphs::keys_values(PatchRange range, int il) const {
  return Builder(*this, range, 1).keys_values(il);
}

StreamGraph Qwen25VlGraphs::queries(PatchRange range, int il) const {
  return Builder(*this, range, 1).queries(il);
}

StreamGraph Qwen25VlGraphs::merge(PatchRange range) const {
  return Builder(*this, range, 1).merge();
}

}  // namespace plateau::vision

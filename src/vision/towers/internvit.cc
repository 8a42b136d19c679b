#include "vision/towers/internvit.h"

#include <cmath>
#include <string>

#include "base/check.h"

namespace plateau::vision {
namespace {

// The projector's norm keeps PyTorch's default, whatever the tower uses.
constexpr float kProjectorEps = 1e-5f;

class Builder {
 public:
  Builder(const model::VisionConfig& config, const model::WeightMap& weights, int n_tiles)
      : config_(config), vision_(config.internvl()), weights_(weights), n_tiles_(n_tiles) {
    const size_t n_nodes = internvit_max_nodes(config);
    tower_.context.reset(ggml_init(
        {ggml_tensor_overhead() * n_nodes + ggml_graph_overhead_custom(n_nodes, /*grads=*/false),
         /*mem_buffer=*/nullptr, /*no_alloc=*/true}));
    PLATEAU_CHECK(tower_.context != nullptr);
    ctx_ = tower_.context.get();
    tower_.graph = ggml_new_graph_custom(ctx_, n_nodes, /*grads=*/false);
  }

  TowerGraph build() {
    ggml_tensor* x = embed_patches();  // [n_embd, 1 + n_patches, n_tiles]
    const int64_t n_pos = x->ne[1];
    x = ggml_reshape_2d(ctx_, x, config_.n_embd, n_pos * n_tiles_);
    for (int il = 0; il < config_.n_layer; ++il) x = layer(x, n_pos, il);
    x = ggml_reshape_3d(ctx_, x, config_.n_embd, n_pos, n_tiles_);
    x = project(pixel_shuffle(drop_class_token(x)));
    ggml_set_name(x, "vision_embeddings");
    ggml_set_output(x);
    ggml_build_forward_expand(tower_.graph, x);
    tower_.embeddings = x;
    return std::move(tower_);
  }

 private:
  ggml_tensor* weight(const std::string& name) const { return weights_.get(name); }

  ggml_tensor* linear(ggml_tensor* x, const std::string& name) {
    ggml_tensor* y = ggml_mul_mat(ctx_, weight(name + ".weight"), x);
    ggml_tensor* bias = weights_.find(name + ".bias");
    return bias != nullptr ? ggml_add(ctx_, y, bias) : y;
  }

  ggml_tensor* norm(ggml_tensor* x, const std::string& name) {
    x = vision_.rms_norm ? ggml_rms_norm(ctx_, x, config_.norm_eps)
                         : ggml_norm(ctx_, x, config_.norm_eps);
    x = ggml_mul(ctx_, x, weight(name + ".weight"));
    ggml_tensor* bias = weights_.find(name + ".bias");
    return bias != nullptr ? ggml_add(ctx_, x, bias) : x;
  }

  /// The class token stands first and takes position 0, as in the published model.
  ggml_tensor* embed_patches() {
    tower_.pixels =
        ggml_new_tensor_4d(ctx_, GGML_TYPE_F32, vision_.tile_size, vision_.tile_size, 3, n_tiles_);
    ggml_set_input(tower_.pixels);
    ggml_set_name(tower_.pixels, "inp_pixels");
    const int patch = config_.patch_size;
    ggml_tensor* x = ggml_conv_2d(ctx_, weight("v.patch_embd.weight"), tower_.pixels, patch, patch,
                                  /*p0=*/0, /*p1=*/0, /*d0=*/1, /*d1=*/1);
    // [w, h, n_embd, n_tiles] -> [n_embd, n_patches, n_tiles]
    x = ggml_reshape_3d(ctx_, x, config_.n_patches(), config_.n_embd, n_tiles_);
    x = ggml_cont(ctx_, ggml_transpose(ctx_, x));
    x = ggml_add(ctx_, x, weight("v.patch_embd.bias"));
    ggml_tensor* class_token =
        ggml_repeat_4d(ctx_, weight("v.class_embd"), config_.n_embd, 1, n_tiles_, 1);
    x = ggml_concat(ctx_, class_token, x, /*dim=*/1);
    return ggml_add(ctx_, x, weight("v.position_embd.weight"));
  }

  ggml_tensor* attention(ggml_tensor* x, int64_t n_pos, const std::string& prefix) {
    const int64_t head_dim = config_.n_embd / config_.n_head;
    ggml_tensor* q = linear(x, prefix + "attn_q");
    ggml_tensor* k = linear(x, prefix + "attn_k");
    ggml_tensor* v = linear(x, prefix + "attn_v");
    if (vision_.qk_norm) {
      q = norm(q, prefix + "attn_q_norm");
      k = norm(k, prefix + "attn_k_norm");
    }
    // [n_embd, n_pos * n_tiles] -> [head_dim, n_pos, n_head, n_tiles]
    const auto by_head = [&](ggml_tensor* y) {
      return ggml_permute(ctx_, ggml_reshape_4d(ctx_, y, head_dim, config_.n_head, n_pos, n_tiles_),
                          0, 2, 1, 3);
    };
    ggml_tensor* out = ggml_flash_attn_ext(
        ctx_, by_head(q), ggml_cast(ctx_, by_head(k), GGML_TYPE_F16),
        ggml_cast(ctx_, by_head(v), GGML_TYPE_F16), /*mask=*/nullptr,
        1.0f / std::sqrt(static_cast<float>(head_dim)), /*max_bias=*/0.0f, /*logit_softcap=*/0.0f);
    ggml_flash_attn_ext_set_prec(out, GGML_PREC_F32);
    out = ggml_reshape_2d(ctx_, out, config_.n_embd, n_pos * n_tiles_);
    return linear(out, prefix + "attn_out");
  }

  ggml_tensor* scaled(ggml_tensor* x, const std::string& name) {
    ggml_tensor* scale = weights_.find(name + ".weight");
    return scale != nullptr ? ggml_mul(ctx_, x, scale) : x;
  }

  ggml_tensor* layer(ggml_tensor* x, int64_t n_pos, int il) {
    const std::string prefix = fmt::format("v.blk.{}.", il);
    ggml_tensor* y = attention(norm(x, prefix + "ln1"), n_pos, prefix);
    x = ggml_add(ctx_, x, scaled(y, prefix + "ls1"));
    y = linear(norm(x, prefix + "ln2"), prefix + "ffn_up");
    y = linear(ggml_gelu(ctx_, y), prefix + "ffn_down");
    return ggml_add(ctx_, x, scaled(y, prefix + "ls2"));
  }

  ggml_tensor* drop_class_token(ggml_tensor* x) {
    return ggml_cont(ctx_, ggml_view_3d(ctx_, x, config_.n_embd, config_.n_patches(), n_tiles_,
                                        x->nb[1], x->nb[2], /*offset=*/x->nb[1]));
  }

  /// scale x scale patches become the channels of one token: [n_embd, n_patches, n_tiles] ->
  /// [n_embd * scale^2, tokens_per_tile, n_tiles].
  ggml_tensor* pixel_shuffle(ggml_tensor* x) {
    const int64_t scale = vision_.scale_factor;
    const int64_t side = config_.patches_per_side();
    const int64_t merged_side = side / scale;
    x = ggml_reshape_4d(ctx_, x, config_.n_embd * scale, merged_side, side, n_tiles_);
    x = ggml_cont_4d(ctx_, ggml_permute(ctx_, x, 0, 2, 1, 3), config_.n_embd * scale * scale,
                     merged_side, merged_side, n_tiles_);
    x = ggml_permute(ctx_, x, 0, 2, 1, 3);
    return ggml_cont_3d(ctx_, x, config_.n_embd * scale * scale, config_.tokens_per_tile(),
                        n_tiles_);
  }

  ggml_tensor* project(ggml_tensor* x) {
    x = ggml_mul(ctx_, ggml_norm(ctx_, x, kProjectorEps), weight("mm.model.mlp.0.weight"));
    x = ggml_add(ctx_, x, weight("mm.model.mlp.0.bias"));
    x = ggml_gelu(ctx_, linear(x, "mm.model.mlp.1"));
    return linear(x, "mm.model.mlp.3");
  }

  const model::VisionConfig& config_;
  const model::InternVlVision& vision_;
  const model::WeightMap& weights_;
  int64_t n_tiles_;
  TowerGraph tower_;
  ggml_context* ctx_ = nullptr;
};

}  // namespace

size_t internvit_max_nodes(const model::VisionConfig& config) {
  constexpr size_t kPerLayer = 64;
  constexpr size_t kAround = 128;
  return kPerLayer * static_cast<size_t>(config.n_layer) + kAround;
}

TowerGraph build_internvit(const model::VisionConfig& config, const model::WeightMap& weights,
                           int n_tiles) {
  return Builder(config, weights, n_tiles).build();
}

}  // namespace plateau::vision

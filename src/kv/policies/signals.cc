#include "kv/policies/signals.h"

#include <cmath>

namespace plateau::kv {
namespace {

// A zero key has no direction and stays zero; every other norm is above this.
constexpr float kNormEps = 1e-30f;

/// Mean over the second dimension: [a, n, b] -> [a, b].
ggml_tensor* mean_of_rows(ggml_context* ctx, ggml_tensor* x) {
  ggml_tensor* transposed = ggml_cont(ctx, ggml_permute(ctx, x, 1, 0, 2, 3));  // [n, a, b]
  return ggml_reshape_2d(ctx, ggml_mean(ctx, transposed), x->ne[0], x->ne[2]);
}

}  // namespace

ggml_tensor* held_rows(const SignalInputs& inputs, ggml_tensor* arena) {
  ggml_tensor* rows = ggml_view_3d(inputs.context, arena, arena->ne[0], inputs.n_held, arena->ne[2],
                                   arena->nb[1], arena->nb[2], /*offset=*/0);
  return ggml_cast(inputs.context, rows, GGML_TYPE_F32);
}

ggml_tensor* unit_keys(const SignalInputs& inputs) {
  return ggml_l2_norm(inputs.context, held_rows(inputs, inputs.k), kNormEps);
}

ggml_tensor* observed_attention(const SignalInputs& inputs) {
  ggml_context* ctx = inputs.context;
  ggml_tensor* kq = ggml_mul_mat(ctx, inputs.k, inputs.q);  // [n_attended, n_observed, n_head]
  ggml_mul_mat_set_prec(kq, GGML_PREC_F32);
  const float scale = 1.0f / std::sqrt(static_cast<float>(inputs.k->ne[0]));
  kq = ggml_soft_max_ext(ctx, kq, inputs.mask, scale, /*max_bias=*/0.0f);
  kq = ggml_view_3d(ctx, kq, inputs.n_held, kq->ne[1], kq->ne[2], kq->nb[1], kq->nb[2],
                    /*offset=*/0);
  return mean_of_rows(ctx, kq);
}

ggml_tensor* key_difference(const SignalInputs& inputs) {
  ggml_context* ctx = inputs.context;
  ggml_tensor* keys = unit_keys(inputs);
  ggml_tensor* anchor = mean_of_rows(ctx, keys);  // [head_dim, n_head_kv]
  anchor = ggml_l2_norm(ctx, anchor, kNormEps);
  anchor = ggml_reshape_3d(ctx, anchor, anchor->ne[0], 1, anchor->ne[1]);
  ggml_tensor* cosine = ggml_mul_mat(ctx, keys, anchor);  // [n_held, 1, n_head_kv]
  return ggml_scale(ctx, ggml_reshape_2d(ctx, cosine, cosine->ne[0], cosine->ne[2]), -1.0f);
}

ggml_tensor* value_norm(const SignalInputs& inputs) {
  ggml_context* ctx = inputs.context;
  ggml_tensor* v = held_rows(inputs, inputs.v);
  ggml_tensor* sum = ggml_sum_rows(ctx, ggml_sqr(ctx, v));  // [1, n_held, n_head_kv]
  return ggml_sqrt(ctx, ggml_reshape_2d(ctx, sum, sum->ne[1], sum->ne[2]));
}

}  // namespace plateau::kv

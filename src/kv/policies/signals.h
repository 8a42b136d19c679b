// Graph fragments that several policies share. All return f32.
#pragma once

#include "ggml.h"
#include "kv/policy.h"

namespace plateau::kv {

/// The first n_held slots of K or V in f32: [head_dim, n_held, n_head_kv].
ggml_tensor* held_rows(const SignalInputs& inputs, ggml_tensor* arena);

/// k_i / ||k_i|| of the held slots, in f32: [head_dim, n_held, n_head_kv]. A zero key stays zero.
ggml_tensor* unit_keys(const SignalInputs& inputs);

/// Attention that the observing rows pay to each held slot, mean over the rows:
/// softmax(q k^T / sqrt(head_dim)) over all visible slots, then the observing rows' own columns are
/// dropped. [n_held, n_head].
ggml_tensor* observed_attention(const SignalInputs& inputs);

/// -cos(k_i, mean of the unit keys): KeyDiff's score. [n_held, n_head_kv].
ggml_tensor* key_difference(const SignalInputs& inputs);

/// ||v_i||. [n_held, n_head_kv].
ggml_tensor* value_norm(const SignalInputs& inputs);

}  // namespace plateau::kv

#include "reference_internvit.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "ggml-cpp.h"
#include "gguf.h"
#include "support/reference_attention.h"

namespace plateau::test {
namespace {

// nn.LayerNorm's default, which the projector keeps.
constexpr double kProjectorEps = 1e-5;

/// nn.GELU(): with the error function, not the tanh approximation.
double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

int64_t key_of(const gguf_context* gguf, const std::string& key) {
  const int64_t id = gguf_find_key(gguf, key.c_str());
  PLATEAU_CHECK(id >= 0);
  return id;
}

std::vector<float> three_floats(const gguf_context* gguf, const std::string& key) {
  const auto* data = static_cast<const float*>(gguf_get_arr_data(gguf, key_of(gguf, key)));
  return {data, data + 3};
}

}  // namespace

ReferenceInternVit::ReferenceInternVit(const std::string& path) {
  ggml_context* tensors = nullptr;
  const gguf_context_ptr gguf(gguf_init_from_file(path.c_str(), {/*no_alloc=*/false, &tensors}));
  PLATEAU_CHECK(gguf != nullptr);
  const ggml_context_ptr owner(tensors);
  for (ggml_tensor* t = ggml_get_first_tensor(tensors); t; t = ggml_get_next_tensor(tensors, t)) {
    if (gguf_find_tensor(gguf.get(), t->name) < 0) continue;  // the data of all, as one
    std::vector<float>& values = weights_[t->name];
    values.resize(static_cast<size_t>(ggml_nelements(t)));
    if (t->type == GGML_TYPE_F32) {
      std::copy_n(static_cast<const float*>(t->data), values.size(), values.begin());
    } else {
      ggml_get_type_traits(t->type)->to_float(t->data, values.data(), ggml_nelements(t));
    }
  }
  const auto number = [&](const std::string& key) {
    return static_cast<int>(gguf_get_val_u32(gguf.get(), key_of(gguf.get(), "clip.vision." + key)));
  };
  tile_ = number("image_size");
  patch_ = number("patch_size");
  n_embd_ = number("embedding_length");
  n_layer_ = number("block_count");
  n_head_ = number("attention.head_count");
  scale_factor_ = number("projector.scale_factor");
  eps_ =
      gguf_get_val_f32(gguf.get(), key_of(gguf.get(), "clip.vision.attention.layer_norm_epsilon"));
  mean_ = three_floats(gguf.get(), "clip.vision.image_mean");
  std_ = three_floats(gguf.get(), "clip.vision.image_std");
}

ReferenceInternVit::Rows ReferenceInternVit::linear(const Rows& x, const std::string& name) const {
  const std::vector<float>& matrix = weight(name + ".weight");
  Rows y{.n = x.n, .n_channel = static_cast<int>(matrix.size()) / x.n_channel};
  y.values.resize(static_cast<size_t>(y.n) * static_cast<size_t>(y.n_channel));
  for (int row = 0; row < y.n; ++row) {
    for (int out = 0; out < y.n_channel; ++out) {
      double sum = has(name + ".bias") ? weight(name + ".bias")[static_cast<size_t>(out)] : 0.0;
      for (int in = 0; in < x.n_channel; ++in) {
        sum += x.at(row, in) * matrix[static_cast<size_t>(out * x.n_channel + in)];
      }
      y.at(row, out) = sum;
    }
  }
  return y;
}

ReferenceInternVit::Rows ReferenceInternVit::layer_norm(const Rows& x, const std::string& name,
                                                        double eps) const {
  Rows y = x;
  for (int row = 0; row < x.n; ++row) {
    double mean = 0, variance = 0;
    for (int c = 0; c < x.n_channel; ++c) mean += x.at(row, c) / x.n_channel;
    for (int c = 0; c < x.n_channel; ++c) {
      variance += (x.at(row, c) - mean) * (x.at(row, c) - mean) / x.n_channel;
    }
    for (int c = 0; c < x.n_channel; ++c) {
      y.at(row, c) = (x.at(row, c) - mean) / std::sqrt(variance + eps) *
                         weight(name + ".weight")[static_cast<size_t>(c)] +
                     weight(name + ".bias")[static_cast<size_t>(c)];
    }
  }
  return y;
}

ReferenceInternVit::Rows ReferenceInternVit::rms_norm(const Rows& x,
                                                      const std::string& name) const {
  Rows y = x;
  for (int row = 0; row < x.n; ++row) {
    double square = 0;
    for (int c = 0; c < x.n_channel; ++c) square += x.at(row, c) * x.at(row, c) / x.n_channel;
    for (int c = 0; c < x.n_channel; ++c) {
      y.at(row, c) = x.at(row, c) / std::sqrt(square + eps_) *
                     weight(name + ".weight")[static_cast<size_t>(c)];
    }
  }
  return y;
}

ReferenceInternVit::Rows ReferenceInternVit::norm(const Rows& x, const std::string& name) const {
  return has(name + ".bias") ? layer_norm(x, name, eps_) : rms_norm(x, name);
}

/// Row 0 is the class token; row 0 of the position table is its position.
ReferenceInternVit::Rows ReferenceInternVit::embed(std::span<const uint8_t> rgb) const {
  const int side = tile_ / patch_;
  Rows x{.n = 1 + side * side, .n_channel = n_embd_};
  x.values.resize(static_cast<size_t>(x.n) * static_cast<size_t>(n_embd_));
  const std::vector<float>& kernel = weight("v.patch_embd.weight");  // [patch, patch, 3, n_embd]
  for (int out = 0; out < n_embd_; ++out) {
    x.at(0, out) = weight("v.class_embd")[static_cast<size_t>(out)];
    for (int py = 0; py < side; ++py) {
      for (int px = 0; px < side; ++px) {
        double sum = weight("v.patch_embd.bias")[static_cast<size_t>(out)];
        for (int channel = 0; channel < 3; ++channel) {
          for (int y = 0; y < patch_; ++y) {
            for (int dx = 0; dx < patch_; ++dx) {
              const int pixel = (py * patch_ + y) * tile_ + px * patch_ + dx;
              const auto c = static_cast<size_t>(channel);
              const double value =
                  (rgb[static_cast<size_t>(3 * pixel + channel)] / 255.0 - mean_[c]) / std_[c];
              sum += value *
                     kernel[static_cast<size_t>(((out * 3 + channel) * patch_ + y) * patch_ + dx)];
            }
          }
        }
        x.at(1 + py * side + px, out) = sum;
      }
    }
  }
  const std::vector<float>& positions = weight("v.position_embd.weight");
  for (size_t i = 0; i < x.values.size(); ++i) x.values[i] += positions[i];
  return x;
}

ReferenceInternVit::Rows ReferenceInternVit::attention(const Rows& x,
                                                       const std::string& prefix) const {
  Rows q = linear(x, prefix + "attn_q");
  Rows k = linear(x, prefix + "attn_k");
  const Rows v = linear(x, prefix + "attn_v");
  if (has(prefix + "attn_q_norm.weight")) {  // over all heads together
    q = rms_norm(q, prefix + "attn_q_norm");
    k = rms_norm(k, prefix + "attn_k_norm");
  }
  const int head_dim = n_embd_ / n_head_;
  const auto by_head = [&](const Rows& rows) {  // [n_head][n][head_dim]
    std::vector<float> out;
    for (int head = 0; head < n_head_; ++head) {
      for (int row = 0; row < rows.n; ++row) {
        for (int c = 0; c < head_dim; ++c) {
          out.push_back(static_cast<float>(rows.at(row, head * head_dim + c)));
        }
      }
    }
    return out;
  };
  const AttentionResult attended =
      reference_attention({.n_head = n_head_,
                           .n_head_kv = n_head_,
                           .n_q = x.n,
                           .n_kv = x.n,
                           .head_dim = head_dim,
                           .scale = 1 / std::sqrt(static_cast<double>(head_dim))},
                          by_head(q), by_head(k), by_head(v));
  Rows joined = x;
  for (int head = 0; head < n_head_; ++head) {
    for (int row = 0; row < x.n; ++row) {
      for (int c = 0; c < head_dim; ++c) {
        joined.at(row, head * head_dim + c) =
            attended.out[static_cast<size_t>((head * x.n + row) * head_dim + c)];
      }
    }
  }
  return linear(joined, prefix + "attn_out");
}

void ReferenceInternVit::add_scaled(Rows& x, const Rows& branch, const std::string& scale) const {
  for (int row = 0; row < x.n; ++row) {
    for (int c = 0; c < x.n_channel; ++c) {
      const double factor = has(scale) ? weight(scale)[static_cast<size_t>(c)] : 1.0;
      x.at(row, c) += factor * branch.at(row, c);
    }
  }
}

/// pixel_shuffle() of version v2 with scale 1/s: a token is an s x s square of patches, row by row
/// of the square.
ReferenceInternVit::Rows ReferenceInternVit::pixel_shuffle(const Rows& patches) const {
  const int side = tile_ / patch_, s = scale_factor_, merged = side / s;
  Rows out{.n = merged * merged, .n_channel = n_embd_ * s * s};
  out.values.resize(patches.values.size());
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const int token = (y / s) * merged + x / s;
      const int place = (y % s) * s + x % s;
      for (int c = 0; c < n_embd_; ++c) {
        out.at(token, place * n_embd_ + c) = patches.at(y * side + x, c);
      }
    }
  }
  return out;
}

std::vector<float> ReferenceInternVit::encode(std::span<const uint8_t> rgb) const {
  PLATEAU_CHECK(static_cast<int>(rgb.size()) == 3 * tile_ * tile_);
  Rows x = embed(rgb);
  for (int il = 0; il < n_layer_; ++il) {
    const std::string prefix = fmt::format("v.blk.{}.", il);
    add_scaled(x, attention(norm(x, prefix + "ln1"), prefix), prefix + "ls1.weight");
    Rows hidden = linear(norm(x, prefix + "ln2"), prefix + "ffn_up");
    for (double& value : hidden.values) value = gelu(value);
    add_scaled(x, linear(hidden, prefix + "ffn_down"), prefix + "ls2.weight");
  }
  Rows patches{.n = x.n - 1, .n_channel = n_embd_};
  patches.values.assign(x.values.begin() + n_embd_, x.values.end());  // without the class token
  Rows merged = layer_norm(pixel_shuffle(patches), "mm.model.mlp.0", kProjectorEps);
  merged = linear(merged, "mm.model.mlp.1");
  for (double& value : merged.values) value = gelu(value);
  merged = linear(merged, "mm.model.mlp.3");
  return {merged.values.begin(), merged.values.end()};
}

}  // namespace plateau::test

#include "reference_qwen25vl.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "ggml-cpp.h"
#include "gguf.h"

namespace plateau::test {
namespace {

constexpr int kMerge = 2;
constexpr int kWindow = 8;  // patches
constexpr double kRopeBase = 10000;

double silu(double x) { return x / (1 + std::exp(-x)); }
double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

}  // namespace

ReferenceQwen25Vl::ReferenceQwen25Vl(const std::string& path) {
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
  const auto key = [&](const char* name) {
    const int64_t id = gguf_find_key(gguf.get(), (std::string("clip.vision.") + name).c_str());
    PLATEAU_CHECK(id >= 0);
    return id;
  };
  const auto number = [&](const char* name) {
    return static_cast<int>(gguf_get_val_u32(gguf.get(), key(name)));
  };
  const auto channels = [&](const char* name) {
    const auto* data = static_cast<const float*>(gguf_get_arr_data(gguf.get(), key(name)));
    return std::vector<float>(data, data + 3);
  };
  patch_ = number("patch_size");
  n_layer_ = number("block_count");
  n_head_ = number("attention.head_count");
  full_every_ = number("n_wa_pattern");
  eps_ = gguf_get_val_f32(gguf.get(), key("attention.layer_norm_epsilon"));
  mean_ = channels("image_mean");
  std_ = channels("image_std");
}

ReferenceQwen25Vl::Row ReferenceQwen25Vl::linear(const Row& x, const std::string& name) const {
  const std::vector<float>& matrix = weight(name + ".weight");
  const std::vector<float>& bias = weight(name + ".bias");
  Row y(bias.begin(), bias.end());
  for (size_t out = 0; out < y.size(); ++out) {
    for (size_t in = 0; in < x.size(); ++in) y[out] += x[in] * matrix[out * x.size() + in];
  }
  return y;
}

ReferenceQwen25Vl::Row ReferenceQwen25Vl::rms_norm(const Row& x, const std::string& name) const {
  double square = 0;
  for (const double value : x) square += value * value / static_cast<double>(x.size());
  Row y = x;
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = x[i] / std::sqrt(square + eps_) * weight(name + ".weight")[i];
  }
  return y;
}

/// Per head: the first quarter of frequencies by the row, the second by the column, and
/// rotate_half over the whole head.
ReferenceQwen25Vl::Row ReferenceQwen25Vl::rotate(const Row& x, int y_position,
                                                 int x_position) const {
  const size_t head_dim = x.size() / static_cast<size_t>(n_head_);
  const size_t half = head_dim / 2, quarter = head_dim / 4;
  Row y = x;
  for (size_t head = 0; head < static_cast<size_t>(n_head_); ++head) {
    for (size_t i = 0; i < half; ++i) {
      const double position = i < quarter ? y_position : x_position;
      const double frequency =
          std::pow(kRopeBase, -2.0 * static_cast<double>(i % quarter) / static_cast<double>(half));
      const double cos = std::cos(position * frequency), sin = std::sin(position * frequency);
      const double a = x[head * head_dim + i], b = x[head * head_dim + half + i];
      y[head * head_dim + i] = a * cos - b * sin;
      y[head * head_dim + half + i] = b * cos + a * sin;
    }
  }
  return y;
}

ReferenceQwen25Vl::Patches ReferenceQwen25Vl::embed(std::span<const uint8_t> first,
                                                    std::span<const uint8_t> second, int n_rows,
                                                    int n_cols) const {
  Patches patches{.n_rows = kMerge * n_rows, .n_cols = kMerge * n_cols};
  const int width = patches.n_cols * patch_;
  const std::span<const uint8_t> frames[] = {first, second};
  const std::vector<float>* kernels[] = {&weight("v.patch_embd.weight"),
                                         &weight("v.patch_embd.weight.1")};
  const auto n_values = static_cast<size_t>(3 * patch_ * patch_);
  const size_t n_embd = kernels[0]->size() / n_values;
  for (int row = 0; row < patches.n_rows; ++row) {
    for (int col = 0; col < patches.n_cols; ++col) {
      Row x(n_embd, 0.0);
      for (int frame = 0; frame < 2; ++frame) {
        for (size_t i = 0; i < n_values; ++i) {
          const int channel = static_cast<int>(i) / (patch_ * patch_);
          const int dy = static_cast<int>(i) / patch_ % patch_, dx = static_cast<int>(i) % patch_;
          const int pixel = (row * patch_ + dy) * width + col * patch_ + dx;
          const auto c = static_cast<size_t>(channel);
          const double value =
              (frames[frame][static_cast<size_t>(3 * pixel + channel)] / 255.0 - mean_[c]) /
              std_[c];
          for (size_t out = 0; out < n_embd; ++out) {
            x[out] += value * (*kernels[frame])[out * n_values + i];
          }
        }
      }
      patches.x.push_back(std::move(x));
    }
  }
  return patches;
}

void ReferenceQwen25Vl::layer(Patches& patches, int il) const {
  const std::string prefix = fmt::format("v.blk.{}.", il);
  const bool full = full_every_ == 0 || (il + 1) % full_every_ == 0;
  std::vector<Row> q, k, v;
  for (size_t i = 0; i < patches.x.size(); ++i) {
    const int row = static_cast<int>(i) / patches.n_cols;
    const int col = static_cast<int>(i) % patches.n_cols;
    const Row y = rms_norm(patches.x[i], prefix + "ln1");
    q.push_back(rotate(linear(y, prefix + "attn_q"), row, col));
    k.push_back(rotate(linear(y, prefix + "attn_k"), row, col));
    v.push_back(linear(y, prefix + "attn_v"));
  }
  const auto window_of = [&](size_t i) {
    const int row = static_cast<int>(i) / patches.n_cols;
    const int col = static_cast<int>(i) % patches.n_cols;
    return std::pair(row / kWindow, col / kWindow);
  };
  const size_t head_dim = q[0].size() / static_cast<size_t>(n_head_);
  for (size_t i = 0; i < patches.x.size(); ++i) {
    Row joined(q[i].size(), 0.0);
    for (size_t head = 0; head < static_cast<size_t>(n_head_); ++head) {
      Row weights(patches.x.size(), 0.0);
      double sum = 0;
      for (size_t j = 0; j < patches.x.size(); ++j) {
        if (!full && window_of(i) != window_of(j)) continue;
        double score = 0;
        for (size_t c = head * head_dim; c < (head + 1) * head_dim; ++c) score += q[i][c] * k[j][c];
        weights[j] = std::exp(score / std::sqrt(static_cast<double>(head_dim)));
        sum += weights[j];
      }
      for (size_t j = 0; j < patches.x.size(); ++j) {
        for (size_t c = head * head_dim; c < (head + 1) * head_dim; ++c) {
          joined[c] += weights[j] / sum * v[j][c];
        }
      }
    }
    const Row branch = linear(joined, prefix + "attn_out");
    for (size_t c = 0; c < branch.size(); ++c) patches.x[i][c] += branch[c];
  }
  for (Row& x : patches.x) {
    const Row y = rms_norm(x, prefix + "ln2");
    Row gate = linear(y, prefix + "ffn_gate");
    const Row up = linear(y, prefix + "ffn_up");
    for (size_t c = 0; c < gate.size(); ++c) gate[c] = silu(gate[c]) * up[c];
    const Row branch = linear(gate, prefix + "ffn_down");
    for (size_t c = 0; c < branch.size(); ++c) x[c] += branch[c];
  }
}

std::vector<float> ReferenceQwen25Vl::encode(std::span<const uint8_t> first,
                                             std::span<const uint8_t> second, int n_rows,
                                             int n_cols) const {
  Patches patches = embed(first, second, n_rows, n_cols);
  for (int il = 0; il < n_layer_; ++il) layer(patches, il);
  std::vector<float> result;
  for (int row = 0; row < n_rows; ++row) {
    for (int col = 0; col < n_cols; ++col) {
      Row merged;
      for (int i = 0; i < kMerge * kMerge; ++i) {
        const int patch = (kMerge * row + i / kMerge) * patches.n_cols + kMerge * col + i % kMerge;
        const Row y = rms_norm(patches.x[static_cast<size_t>(patch)], "v.post_ln");
        merged.insert(merged.end(), y.begin(), y.end());
      }
      merged = linear(merged, "mm.0");
      for (double& value : merged) value = gelu(value);
      for (const double value : linear(merged, "mm.2")) {
        result.push_back(static_cast<float>(value));
      }
    }
  }
  return result;
}

}  // namespace plateau::test

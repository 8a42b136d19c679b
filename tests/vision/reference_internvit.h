// InternVL's vision tower as its published modeling code writes it (modeling_intern_vit.py and
// modeling_internvl_chat.py, InternVL3.5, arXiv:2508.18265): plain loops in double precision on the
// file's own weights, nothing shared with production code. Slow on purpose.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace plateau::test {

class ReferenceInternVit {
 public:
  /// Reads sizes and weights of an mmproj file; quantised ones are expanded.
  explicit ReferenceInternVit(const std::string& path);

  int tile() const { return tile_; }

  /// Embeddings of one tile, `rgb` [tile][tile][3]: [tokens per tile][n_embd_out].
  std::vector<float> encode(std::span<const uint8_t> rgb) const;

 private:
  /// n rows of width n_channel.
  struct Rows {
    int n = 0;
    int n_channel = 0;
    std::vector<double> values = {};
    double& at(int row, int channel) {
      return values[static_cast<size_t>(row) * static_cast<size_t>(n_channel) +
                    static_cast<size_t>(channel)];
    }
    double at(int row, int channel) const { return const_cast<Rows*>(this)->at(row, channel); }
  };

  bool has(const std::string& name) const { return weights_.contains(name); }
  const std::vector<float>& weight(const std::string& name) const { return weights_.at(name); }
  Rows linear(const Rows& x, const std::string& name) const;
  Rows layer_norm(const Rows& x, const std::string& name, double eps) const;
  Rows rms_norm(const Rows& x, const std::string& name) const;
  Rows norm(const Rows& x, const std::string& name) const;
  Rows embed(std::span<const uint8_t> rgb) const;
  Rows attention(const Rows& x, const std::string& prefix) const;
  void add_scaled(Rows& x, const Rows& branch, const std::string& scale) const;
  Rows pixel_shuffle(const Rows& patches) const;

  std::map<std::string, std::vector<float>> weights_;  // ggml order: the input index is fastest
  int tile_ = 0, patch_ = 0, n_embd_ = 0, n_layer_ = 0, n_head_ = 0, scale_factor_ = 0;
  double eps_ = 0;
  std::vector<float> mean_, std_;
};

}  // namespace plateau::test

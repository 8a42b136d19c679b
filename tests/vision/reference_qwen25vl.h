// Qwen2.5-VL's vision tower as its published modeling code writes it (modeling_qwen2_5_vl.py,
// arXiv:2502.13923): plain loops in double precision on the file's own weights, nothing shared with
// production code. Slow on purpose.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace plateau::test {

class ReferenceQwen25Vl {
 public:
  /// Reads sizes and weights of an mmproj file.
  explicit ReferenceQwen25Vl(const std::string& path);

  /// Embeddings of two frames of n_rows x n_cols tokens, [height][width][3] each, in reading order:
  /// [n_rows * n_cols][n_embd_out].
  std::vector<float> encode(std::span<const uint8_t> first, std::span<const uint8_t> second,
                            int n_rows, int n_cols) const;

 private:
  using Row = std::vector<double>;
  /// Patches in reading order.
  struct Patches {
    int n_rows = 0;
    int n_cols = 0;
    std::vector<Row> x = {};
  };

  const std::vector<float>& weight(const std::string& name) const { return weights_.at(name); }
  Row linear(const Row& x, const std::string& name) const;
  Row rms_norm(const Row& x, const std::string& name) const;
  Row rotate(const Row& x, int y_position, int x_position) const;
  Patches embed(std::span<const uint8_t> first, std::span<const uint8_t> second, int n_rows,
                int n_cols) const;
  void layer(Patches& patches, int il) const;

  std::map<std::string, std::vector<float>> weights_;  // ggml order: the input index is fastest
  int patch_ = 0, n_layer_ = 0, n_head_ = 0, full_every_ = 0;
  double eps_ = 0;
  std::vector<float> mean_, std_;
};

}  // namespace plateau::test

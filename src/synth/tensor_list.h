// How the tiny models' tensors are listed.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "synth/gguf_plan.h"

namespace plateau::synth {

/// Adds tensors to a plan with the deviations that keep activations near 1.
class TensorList {
 public:
  TensorList(GgufPlan& plan, ggml_type type, float scale)
      : plan_(plan), type_(type), scale_(scale) {}

  /// [n_in, n_out]
  void matrix(const std::string& name, int64_t n_in, int64_t n_out, float gain = 1.0F) {
    const float deviation = gain * scale_ / std::sqrt(static_cast<float>(n_in));
    plan_.tensors.push_back(
        {.name = name, .ne = {n_in, n_out}, .type = type_, .deviation = deviation});
  }
  void norm(const std::string& name, int64_t n, float mean = 1.0F) {
    vector(name, n, mean, 0.1F * mean);
  }
  void bias(const std::string& name, int64_t n) { vector(name, n, 0.0F, 0.1F); }
  void vector(const std::string& name, int64_t n, float mean, float deviation) {
    plan_.tensors.push_back({.name = name, .ne = {n}, .mean = mean, .deviation = deviation});
  }
  void add(PlannedTensor tensor) { plan_.tensors.push_back(std::move(tensor)); }

 private:
  GgufPlan& plan_;
  ggml_type type_;
  float scale_;
};

}  // namespace plateau::synth

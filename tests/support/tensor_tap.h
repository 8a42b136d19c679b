// Copies named tensors out of a running ggml scheduler through its evaluation callback.
//
// Naming a tensor splits the graph there, which changes no result but costs time, so a tap starts
// with nothing wanted. A name can fire several times in one graph (llama.cpp calls the projection,
// its reshape and the rotated result all "Qcur-0"): every firing is kept, in order, and find()
// gives the last one.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "ggml.h"

namespace plateau::test {

struct TappedTensor {
  std::string name = {};
  ggml_op op = GGML_OP_NONE;       // of the node that made it
  ggml_type type = GGML_TYPE_F32;  // in the graph; `values` are converted
  std::array<int64_t, GGML_MAX_DIMS> ne = {1, 1, 1, 1};
  std::vector<float> values = {};  // contiguous in ggml order, whatever the strides were
};

class TensorTap {
 public:
  /// Captures tensors of these names from the next computation on.
  void want(std::set<std::string> names);
  /// Captures every tensor that has a name which llama.cpp gave it.
  void want_all();
  void want_nothing();

  /// What was captured, in the order of evaluation.
  const std::vector<TappedTensor>& tensors() const { return tensors_; }
  /// The last one of that name. Throws kNotFound, listing what was captured.
  const TappedTensor& find(const std::string& name) const;
  void clear() { tensors_.clear(); }

  /// For cb_eval and cb_eval_user_data; the tap must outlive the context and not move.
  static bool callback(ggml_tensor* tensor, bool ask, void* tap);

 private:
  bool wants(const ggml_tensor* tensor) const;

  bool all_ = false;
  std::set<std::string> names_;
  std::vector<TappedTensor> tensors_;
};

}  // namespace plateau::test

#include "bench/node_times.h"

#include <string_view>

namespace plateau::bench {

graph::TensorTap NodeTimes::tap() {
  return [this](ggml_tensor* node) { add(*node); };
}

void NodeTimes::add(const ggml_tensor& node) {
  const double now = watch_.ms();
  const double ms = now - last_ms_;
  last_ms_ = now;
  if (std::string_view(node.name).starts_with("signal")) {
    signals_ms_ += ms;
  } else if (node.op == GGML_OP_FLASH_ATTN_EXT) {
    attention_ms_ += ms;
  } else if (node.op == GGML_OP_MUL_MAT) {
    linear_ms_ += ms;
  } else {
    other_ms_ += ms;
  }
}

}  // namespace plateau::bench

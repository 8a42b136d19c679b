// Where a prefill's time goes, by graph node. Timing a node means computing it by itself, so a
// profiled run is slower than one that is not; its shares are what counts.
#pragma once

#include "base/stopwatch.h"
#include "graph/block_runner.h"

namespace plateau::bench {

class NodeTimes {
 public:
  /// To be set on the runner; this object must outlive it.
  graph::TensorTap tap();
  /// Time since the last node is not the next one's.
  void start_block() { last_ms_ = watch_.ms(); }

  double linear_ms() const { return linear_ms_; }        // matrix products with weights
  double attention_ms() const { return attention_ms_; }  // flash attention
  double signals_ms() const { return signals_ms_; }      // a policy's scores on the device
  double other_ms() const { return other_ms_; }          // norms, rotary embedding, copies

 private:
  void add(const ggml_tensor& node);

  Stopwatch watch_;
  double last_ms_ = 0;
  double linear_ms_ = 0;
  double attention_ms_ = 0;
  double signals_ms_ = 0;
  double other_ms_ = 0;
};

}  // namespace plateau::bench

// How far an evaluation is: a bar on a terminal, a line now and then elsewhere.
#pragma once

#include <cstddef>

#include "base/stopwatch.h"
#include "cli/progress_bar.h"
#include "eval/run_record.h"

namespace plateau::cli {

class EvalProgress {
 public:
  /// `n_pairs` answers to come. Quiet: only errors are shown.
  EvalProgress(size_t n_pairs, bool quiet) : n_pairs_(n_pairs), quiet_(quiet) {}

  void add(const eval::ResultRecord& record);
  void clear() { bar_.clear(); }

 private:
  size_t n_pairs_;
  bool quiet_;
  size_t n_done_ = 0;
  size_t n_right_ = 0;
  Stopwatch watch_;
  Stopwatch since_line_;
  ProgressBar bar_;
};

}  // namespace plateau::cli

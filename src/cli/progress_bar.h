// One line on stderr that is redrawn in place; silent where stderr is not a terminal.
#pragma once

#include <string>

namespace plateau::cli {

class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  bool is_terminal() const { return is_terminal_; }
  /// `fraction` in [0, 1].
  void draw(double fraction, const std::string& label);
  /// Removes the line, so that other output can follow.
  void clear();

 private:
  bool is_terminal_;
  bool drawn_ = false;
};

}  // namespace plateau::cli

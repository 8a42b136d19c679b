// Tested by tests/cli/eval_command_test.cc.
#include "cli/eval_progress.h"

#include <fmt/format.h>

#include <string>

#include "cli/say.h"

namespace plateau::cli {
namespace {

constexpr double kSecondsBetweenLines = 30;  // where there is no terminal

std::string duration(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 90 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

}  // namespace

void EvalProgress::add(const eval::ResultRecord& record) {
  ++n_done_;
  n_right_ += record.right ? 1 : 0;
  if (record.is_error) {
    bar_.clear();
    say("plateau: {} under {}: {}\n", record.id, record.setting.name(), record.error_message);
  }
  if (quiet_) return;
  const double elapsed = watch_.ms() / 1000;
  const std::string label = fmt::format(
      "{}/{} answers, {:.0f} % right, {} left", n_done_, n_pairs_,
      100.0 * static_cast<double>(n_right_) / static_cast<double>(n_done_),
      duration(elapsed / static_cast<double>(n_done_) * static_cast<double>(n_pairs_ - n_done_)));
  if (bar_.is_terminal()) {
    bar_.draw(static_cast<double>(n_done_) / static_cast<double>(n_pairs_), label);
  } else if (since_line_.ms() > kSecondsBetweenLines * 1000) {
    say("plateau: {}\n", label);
    since_line_ = Stopwatch();
  }
}

}  // namespace plateau::cli

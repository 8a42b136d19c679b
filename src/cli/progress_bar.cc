#include "cli/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/say.h"

namespace plateau::cli {
namespace {

constexpr int kWidth = 30;

}  // namespace

ProgressBar::ProgressBar() : is_terminal_(isatty(STDERR_FILENO) != 0) {}

void ProgressBar::draw(double fraction, const std::string& label) {
  if (!is_terminal_) return;
  const int filled = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * kWidth);
  say("\r\x1b[K[{:#<{}}{:.<{}}] {}", "", filled, "", kWidth - filled, label);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressBar::clear() {
  if (!drawn_) return;
  say("\r\x1b[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace plateau::cli

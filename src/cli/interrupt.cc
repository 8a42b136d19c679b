#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

namespace plateau::cli {
namespace {

std::atomic<bool> g_interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

void on_signal(int number) {
  g_interrupted = true;
  std::signal(number, SIG_DFL);
}

}  // namespace

void install_interrupt_handler() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

bool interrupted() { return g_interrupted; }

}  // namespace plateau::cli

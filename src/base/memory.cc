#include "base/memory.h"

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <string>

namespace plateau {
namespace {

constexpr auto kSampleInterval = std::chrono::milliseconds(5);

int64_t status_field(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.compare(0, name.size(), name) == 0 && line.size() > name.size() &&
        line[name.size()] == ':') {
      return std::stoll(line.substr(name.size() + 1)) * 1024;  // the unit is always kB
    }
  }
  return 0;
}

}  // namespace

int64_t peak_rss_bytes() { return status_field("VmHWM"); }
int64_t anon_bytes() { return status_field("RssAnon"); }

AnonWatch::AnonWatch()
    : thread_([this](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any wake;
        std::unique_lock lock(mutex);
        while (!stop.stop_requested()) {
          sample();
          wake.wait_for(lock, stop, kSampleInterval, [] { return false; });
        }
      }) {}

AnonWatch::~AnonWatch() = default;

void AnonWatch::sample() {
  const int64_t now = anon_bytes();
  int64_t before = peak_.load();
  while (now > before && !peak_.compare_exchange_weak(before, now)) {
  }
}

int64_t AnonWatch::peak_bytes() {
  sample();
  return peak_.load();
}

}  // namespace plateau

// What the kernel says about this process's memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace plateau {

/// Peak resident set (VmHWM), with mapped files; 0 where the kernel does not say.
int64_t peak_rss_bytes();

/// Resident anonymous memory now (RssAnon): heap and buffers, without mapped files.
int64_t anon_bytes();

/// Watches RssAnon, whose peak the kernel does not keep, from a thread of its own.
class AnonWatch {
 public:
  AnonWatch();
  ~AnonWatch();
  AnonWatch(const AnonWatch&) = delete;
  AnonWatch& operator=(const AnonWatch&) = delete;

  /// The highest value seen since construction; takes a sample first.
  int64_t peak_bytes();

 private:
  void sample();

  std::atomic<int64_t> peak_ = 0;
  std::jthread thread_;
};

}  // namespace plateau

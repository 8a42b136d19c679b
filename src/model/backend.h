// Devices and the scheduler that runs graphs on them, as RAII over ggml-backend.
// Tested by tests/model/backend_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ggml-cpp.h"

namespace plateau::model {

/// One compute device; a cheap handle, valid for the life of the process.
class Device {
 public:
  explicit Device(ggml_backend_dev_t handle) : handle_(handle) {}

  static Device cpu();
  /// "" picks the first GPU, or the CPU where there is none.
  /// Errors: kNotFound, listing the devices of this machine.
  static Device find(const std::string& name);
  static std::vector<Device> all();

  std::string name() const { return ggml_backend_dev_name(handle_); }
  std::string description() const { return ggml_backend_dev_description(handle_); }
  bool is_cpu() const { return ggml_backend_dev_type(handle_) == GGML_BACKEND_DEVICE_TYPE_CPU; }
  ggml_backend_dev_t handle() const { return handle_; }
  int64_t free_bytes() const;

 private:
  ggml_backend_dev_t handle_;
};

struct DeviceBytes {
  std::string device;
  int64_t bytes = 0;
};

/// The backends that one engine computes with: the device, and the CPU for what it cannot do.
/// Not thread-safe.
class Backends {
 public:
  /// REQUIRES: n_threads >= 1.
  Backends(const Device& device, int n_threads);

  const Device& device() const { return device_; }
  int n_threads() const { return n_threads_; }

  /// A scheduler for graphs of at most `max_nodes` nodes.
  ggml_backend_sched_ptr new_scheduler(size_t max_nodes) const;

  /// What compute() would allocate for the graph, by device: tensors, and on the CPU the kernels'
  /// own scratch. Allocates nothing; the graph cannot be run afterwards.
  std::vector<DeviceBytes> measure(ggml_backend_sched_t sched, ggml_cgraph* graph) const;

  /// Polled between graph nodes on the CPU; true aborts the graph (compute() then throws
  /// kCancelled).
  void set_cancel_poll(std::function<bool()> poll);
  const std::function<bool()>& cancel_poll() const { return cancel_poll_; }

  /// Allocates, lets `set_inputs` fill the inputs, and runs. Errors: kResourceExhausted,
  /// kCancelled.
  void compute(ggml_backend_sched_t sched, ggml_cgraph* graph,
               const std::function<void()>& set_inputs) const;

 private:
  Device device_;
  int n_threads_;
  std::vector<ggml_backend_ptr> backends_;  // the device first, the CPU last
  std::function<bool()> cancel_poll_;
};

/// Bytes of compute buffers that a scheduler holds now, over all its backends.
int64_t scheduler_bytes(ggml_backend_sched_t sched);

/// Gives the context's tensors a place but no memory, so that graphs on them can be measured.
ggml_backend_buffer_ptr place_without_memory(ggml_context* context,
                                             ggml_backend_buffer_type_t type);

/// Cores that a computation can use here: the affinity mask, capped by the cgroup's CPU quota.
int usable_cores();

}  // namespace plateau::model

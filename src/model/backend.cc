#include "model/backend.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "base/check.h"
#include "ggml-cpu.h"
#include "model/log_capture.h"

namespace plateau::model {
namespace {

bool poll_cancel(void* data) {
  const auto& poll = *static_cast<const std::function<bool()>*>(data);
  return poll && poll();
}

}  // namespace

int64_t Device::free_bytes() const {
  size_t free = 0;
  size_t total = 0;
  ggml_backend_dev_memory(handle_, &free, &total);
  return static_cast<int64_t>(free);
}

Device Device::cpu() { return Device(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU)); }

std::vector<Device> Device::all() {
  silence_library_logs();
  std::vector<Device> devices;
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    devices.emplace_back(ggml_backend_dev_get(i));
  }
  return devices;
}

Device Device::find(const std::string& name) {
  const std::vector<Device> devices = all();
  std::string known;
  for (const Device& device : devices) {
    if (name.empty() ? !device.is_cpu() : device.name() == name) return device;
    known += (known.empty() ? "" : ", ") + device.name();
  }
  if (name.empty()) return cpu();
  throw_error(ErrorCode::kInvalidArgument, "[--device] expected one of {}, got {}", known, name);
}

Backends::Backends(const Device& device, int n_threads) : device_(device), n_threads_(n_threads) {
  PLATEAU_CHECK(n_threads >= 1);
  silence_library_logs();
  const auto add = [&](ggml_backend_dev_t handle) {
    ggml_backend_ptr backend(ggml_backend_dev_init(handle, nullptr));
    if (!backend) {
      throw_error(ErrorCode::kUnavailable, "[device] {} cannot be opened",
                  ggml_backend_dev_name(handle));
    }
    backends_.push_back(std::move(backend));
  };
  if (!device.is_cpu()) add(device.handle());
  add(Device::cpu().handle());
  ggml_backend_cpu_set_n_threads(backends_.back().get(), n_threads);
}

void Backends::set_cancel_poll(std::function<bool()> poll) {
  cancel_poll_ = std::move(poll);
  ggml_backend_cpu_set_abort_callback(backends_.back().get(), cancel_poll_ ? poll_cancel : nullptr,
                                      &cancel_poll_);
}

ggml_backend_sched_ptr Backends::new_scheduler(size_t max_nodes) const {
  std::vector<ggml_backend_t> handles;
  for (const ggml_backend_ptr& backend : backends_) handles.push_back(backend.get());
  ggml_backend_sched_ptr sched(ggml_backend_sched_new(handles.data(), nullptr,
                                                      static_cast<int>(handles.size()), max_nodes,
                                                      /*parallel=*/false, /*op_offload=*/true));
  PLATEAU_CHECK(sched != nullptr);
  return sched;
}

void Backends::compute(ggml_backend_sched_t sched, ggml_cgraph* graph,
                       const std::function<void()>& set_inputs) const {
  ggml_backend_sched_reset(sched);
  if (!ggml_backend_sched_alloc_graph(sched, graph)) {
    throw_error(ErrorCode::kResourceExhausted,
                "[compute] expected room for a compute buffer, the device has too little; try a "
                "smaller --block");
  }
  set_inputs();
  const ggml_status status = ggml_backend_sched_graph_compute(sched, graph);
  if (status == GGML_STATUS_ABORTED) throw_error(ErrorCode::kCancelled, "interrupted");
  if (status == GGML_STATUS_ALLOC_FAILED) {
    throw_error(ErrorCode::kResourceExhausted,
                "[compute] the device ran out of memory; try a smaller --block");
  }
  PLATEAU_CHECK(status == GGML_STATUS_SUCCESS);
}

std::vector<DeviceBytes> Backends::measure(ggml_backend_sched_t sched, ggml_cgraph* graph) const {
  std::vector<size_t> sizes(backends_.size(), 0);
  ggml_backend_sched_reserve_size(sched, graph, sizes.data());
  // Kernels' scratch is the maximum over the nodes, so the CPU's share of them needs no more.
  sizes.back() += ggml_graph_plan(graph, n_threads_, /*threadpool=*/nullptr).work_size;
  std::vector<DeviceBytes> result;
  for (size_t i = 0; i < sizes.size(); ++i) {
    result.push_back({ggml_backend_dev_name(ggml_backend_get_device(backends_[i].get())),
                      static_cast<int64_t>(sizes[i])});
  }
  return result;
}

ggml_backend_buffer_ptr place_without_memory(ggml_context* context,
                                             ggml_backend_buffer_type_t type) {
  ggml_backend_buffer_ptr buffer(ggml_backend_buft_alloc_buffer(type, /*size=*/0));
  PLATEAU_CHECK(buffer != nullptr);
  for (ggml_tensor* tensor = ggml_get_first_tensor(context); tensor != nullptr;
       tensor = ggml_get_next_tensor(context, tensor)) {
    tensor->buffer = buffer.get();
  }
  return buffer;
}

int64_t scheduler_bytes(ggml_backend_sched_t sched) {
  int64_t total = 0;
  for (int i = 0; i < ggml_backend_sched_get_n_backends(sched); ++i) {
    total += static_cast<int64_t>(
        ggml_backend_sched_get_buffer_size(sched, ggml_backend_sched_get_backend(sched, i)));
  }
  return total;
}

int usable_cores() {
  int n = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) n = std::min(n, CPU_COUNT(&mask));
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");
  double quota = 0;
  double period = 0;
  if (quota_file >> quota >> period && quota > 0 && period > 0) {
    n = std::min(n, std::max(1, static_cast<int>(quota / period + 0.5)));
  }
  return std::max(1, n);
}

}  // namespace plateau::model

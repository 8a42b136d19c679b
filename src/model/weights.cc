#include "model/weights.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace plateau::model {
namespace {

constexpr size_t kStagingBytes = size_t{4} << 20;

/// A file descriptor that closes itself.
class Fd {
 public:
  explicit Fd(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) throw_error(ErrorCode::kNotFound, "[{}] cannot be opened for reading", path);
  }
  ~Fd() { ::close(fd_); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

void read_exactly(const std::string& path, int fd, void* data, size_t size, uint64_t offset) {
  auto* bytes = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = ::pread(fd, bytes, size, static_cast<off_t>(offset));
    if (n <= 0) throw_error(ErrorCode::kUnavailable, "[{}] cannot be read at {}", path, offset);
    bytes += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
}

}  // namespace

ggml_tensor* WeightMap::find(const std::string& name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : it->second;
}

ggml_tensor* WeightMap::get(const std::string& name) const {
  ggml_tensor* tensor = find(name);
  if (tensor == nullptr) {
    throw_error(ErrorCode::kInternal, "[weights] expected tensor {}, which was not loaded", name);
  }
  return tensor;
}

struct GgufWeights::Mapping {
  void* address = nullptr;
  size_t size = 0;
  ~Mapping() {
    if (address != nullptr) ::munmap(address, size);
  }
};

GgufWeights::GgufWeights(const GgufFile& file, const Device& device, WeightUse use) {
  context_.reset(ggml_init({/*mem_size=*/ggml_tensor_overhead() * (file.tensors().size() + 1),
                            /*mem_buffer=*/nullptr, /*no_alloc=*/true}));
  PLATEAU_CHECK(context_ != nullptr);
  for (const TensorInfo& info : file.tensors()) {
    ggml_tensor* tensor = ggml_new_tensor(context_.get(), info.type, GGML_MAX_DIMS, info.ne.data());
    ggml_set_name(tensor, info.name.c_str());
    map_.add(info.name, tensor);
  }
  bytes_.device = device.name();
  (device.is_cpu() ? bytes_.mapped : bytes_.allocated) = static_cast<int64_t>(file.tensor_bytes());
  if (use == WeightUse::kPlanning) {
    buffer_ = place_without_memory(context_.get(), ggml_backend_dev_buffer_type(device.handle()));
    return;
  }

  const Fd fd(file.path());
  if (device.is_cpu()) {
    struct stat status = {};
    if (::fstat(fd.get(), &status) != 0) {
      throw_error(ErrorCode::kUnavailable, "[{}] cannot be read", file.path());
    }
    mapping_ = std::make_unique<Mapping>();
    mapping_->size = static_cast<size_t>(status.st_size);
    void* address =
        ::mmap(nullptr, mapping_->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd.get(), 0);
    if (address == MAP_FAILED) {
      throw_error(ErrorCode::kResourceExhausted, "[{}] cannot be mapped into memory", file.path());
    }
    mapping_->address = address;
    buffer_.reset(ggml_backend_cpu_buffer_from_ptr(address, mapping_->size));
    PLATEAU_CHECK(buffer_ != nullptr);
    for (const TensorInfo& info : file.tensors()) {
      ggml_backend_tensor_alloc(buffer_.get(), map_.get(info.name),
                                static_cast<char*>(address) + info.file_offset);
    }
    return;
  }

  buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(
      context_.get(), ggml_backend_dev_buffer_type(device.handle())));
  if (!buffer_) {
    throw_error(ErrorCode::kResourceExhausted,
                "[{}] expected {} MiB for weights on {}, the device has less; try another --device",
                file.path(), file.tensor_bytes() >> 20, device.name());
  }
  std::vector<char> staging(kStagingBytes);
  for (const TensorInfo& info : file.tensors()) {
    for (uint64_t done = 0; done < info.n_bytes;) {
      const size_t n = static_cast<size_t>(std::min<uint64_t>(staging.size(), info.n_bytes - done));
      read_exactly(file.path(), fd.get(), staging.data(), n, info.file_offset + done);
      ggml_backend_tensor_set(map_.get(info.name), staging.data(), done, n);
      done += n;
    }
  }
}

GgufWeights::~GgufWeights() = default;
GgufWeights::GgufWeights(GgufWeights&&) noexcept = default;
GgufWeights& GgufWeights::operator=(GgufWeights&&) noexcept = default;

}  // namespace plateau::model

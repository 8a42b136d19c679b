// Weights by GGUF name. WeightMap is a view; LanguageModel and GgufWeights own the data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "ggml-cpp.h"
#include "model/backend.h"
#include "model/gguf_file.h"

namespace plateau::model {

/// Bytes of weights on one device.
struct WeightBytes {
  std::string device;
  int64_t mapped = 0;     // pages of the file itself
  int64_t allocated = 0;  // copies: on a device, or in a layout of the CPU's own
};

/// What weights are opened for.
enum class WeightUse {
  kCompute,   // they are loaded
  kPlanning,  // shapes and places only: graphs can be built and measured, but not run
};

class WeightMap {
 public:
  void add(const std::string& name, ggml_tensor* tensor) { tensors_.emplace(name, tensor); }

  /// Errors: kInternal: the file was validated, so a missing name is our bug.
  ggml_tensor* get(const std::string& name) const;
  ggml_tensor* find(const std::string& name) const;  // null when absent

 private:
  std::unordered_map<std::string, ggml_tensor*> tensors_;
};

/// All tensors of one GGUF file on one device; used for vision towers. On the CPU the file is
/// mapped, elsewhere it is copied through a small staging buffer.
class GgufWeights {
 public:
  /// Errors: kResourceExhausted (no memory on the device), kUnavailable (read error).
  GgufWeights(const GgufFile& file, const Device& device, WeightUse use = WeightUse::kCompute);
  ~GgufWeights();
  GgufWeights(GgufWeights&&) noexcept;
  GgufWeights& operator=(GgufWeights&&) noexcept;

  const WeightMap& map() const { return map_; }
  const WeightBytes& bytes() const { return bytes_; }

 private:
  struct Mapping;
  std::unique_ptr<Mapping> mapping_;
  ggml_context_ptr context_;
  ggml_backend_buffer_ptr buffer_;
  WeightMap map_;
  WeightBytes bytes_;
};

}  // namespace plateau::model

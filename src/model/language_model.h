// A text model loaded by libllama: weights by name, vocabulary, chat template. The decoder graph
// and the cache are ours (graph/, kv/).
//
// Immutable after loading.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/backend.h"
#include "model/model_config.h"
#include "model/vocab.h"
#include "model/weights.h"

struct llama_model;

namespace plateau::model {

struct LoadOptions {
  Device device = Device::cpu();
  /// Layers kept on the device, from the last; negative: all.
  int n_gpu_layers = -1;
  /// Called with 0..1; returning false stops loading (kCancelled).
  std::function<bool(float)> on_progress;
  WeightUse use = WeightUse::kCompute;
};

class LanguageModel {
 public:
  /// Validates the metadata first, then lets libllama load the weights.
  /// Errors: those of GgufFile::open and read_model_config; kCorrupt when libllama refuses the
  /// file, with its reason; kCancelled.
  static LanguageModel load(const std::string& path, const LoadOptions& options);
  ~LanguageModel();
  LanguageModel(LanguageModel&&) noexcept;
  LanguageModel& operator=(LanguageModel&&) noexcept;

  const ModelConfig& config() const { return config_; }
  const WeightMap& weights() const { return weights_; }
  /// One entry per device.
  const std::vector<WeightBytes>& weight_bytes() const { return weight_bytes_; }
  const Vocab& vocab() const { return *vocab_; }
  /// For libraries that want libllama's own model beside ours.
  const llama_model* library_model() const;
  /// The Jinja source from the file; empty when it has none.
  const std::string& chat_template() const { return chat_template_; }

 private:
  LanguageModel();
  struct Handle;
  std::unique_ptr<Handle> handle_;
  ModelConfig config_;
  WeightMap weights_;
  std::vector<WeightBytes> weight_bytes_;
  std::unique_ptr<Vocab> vocab_;
  std::string chat_template_;
};

}  // namespace plateau::model

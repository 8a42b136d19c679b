#include "model/language_model.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "llama-cpp.h"
#include "model/log_capture.h"

// From llama.cpp's src/llama-model.h, which is internal: the tensors of a loaded model by GGUF
// name. This is the only declaration of it in Plateau; the pinned tag guarantees that it exists.
const std::vector<std::pair<std::string, ggml_tensor*>>& llama_internal_get_tensor_map(
    const llama_model* model);

namespace plateau::model {
namespace {

/// libllama maps what stays in the CPU's plain layout, which is the only host one, and copies the
/// rest.
void count_bytes(const ggml_tensor* tensor, std::vector<WeightBytes>& totals) {
  const ggml_backend_buffer_type_t type = ggml_backend_buffer_get_type(tensor->buffer);
  const ggml_backend_dev_t cpu = Device::cpu().handle();
  const ggml_backend_dev_t found = ggml_backend_buft_get_device(type);
  const ggml_backend_dev_t device = found != nullptr ? found : cpu;
  const bool is_mapped = device == cpu && ggml_backend_buft_is_host(type);
  const std::string name = ggml_backend_dev_name(device);
  auto total = std::find_if(totals.begin(), totals.end(),
                            [&](const WeightBytes& bytes) { return bytes.device == name; });
  if (total == totals.end()) total = totals.insert(totals.end(), {.device = name});
  (is_mapped ? total->mapped : total->allocated) +=
      static_cast<int64_t>(ggml_backend_buft_get_alloc_size(type, tensor));
}

}  // namespace

struct LanguageModel::Handle {
  llama_model_ptr model;
};

LanguageModel::LanguageModel() = default;
LanguageModel::~LanguageModel() = default;
LanguageModel::LanguageModel(LanguageModel&&) noexcept = default;
LanguageModel& LanguageModel::operator=(LanguageModel&&) noexcept = default;

const llama_model* LanguageModel::library_model() const { return handle_->model.get(); }

LanguageModel LanguageModel::load(const std::string& path, const LoadOptions& options) {
  LanguageModel result;
  {
    const GgufFile file = GgufFile::open(path);
    result.config_ = read_model_config(file);
    result.chat_template_ = file.find_string("tokenizer.chat_template").value_or("");
  }

  llama_model_params params = llama_model_default_params();
  std::vector<ggml_backend_dev_t> devices;
  if (!options.device.is_cpu()) devices.push_back(options.device.handle());
  devices.push_back(nullptr);
  params.devices = devices.data();
  params.n_gpu_layers = options.device.is_cpu() ? 0 : options.n_gpu_layers;
  if (options.use == WeightUse::kPlanning) {
    params.no_alloc = true;
    params.load_mode = LLAMA_LOAD_MODE_NONE;
  }
  bool stopped = false;
  struct Progress {
    const std::function<bool(float)>* callback;
    bool* stopped;
  } progress{&options.on_progress, &stopped};
  params.progress_callback_user_data = &progress;
  params.progress_callback = [](float fraction, void* data) {
    const auto* state = static_cast<Progress*>(data);
    *state->stopped = *state->callback && !(*state->callback)(fraction);
    return !*state->stopped;
  };

  const LogCapture log;
  result.handle_ = std::make_unique<Handle>();
  result.handle_->model.reset(llama_model_load_from_file(path.c_str(), params));
  if (!result.handle_->model) {
    if (stopped) throw_error(ErrorCode::kCancelled, "interrupted");
    throw_error(ErrorCode::kCorrupt, "[{}] cannot be loaded: {}", path,
                log.first_error("libllama gives no reason"));
  }
  llama_model* model = result.handle_->model.get();
  for (const auto& [name, tensor] : llama_internal_get_tensor_map(model)) {
    // Of a tied embedding, libllama keeps a second tensor by the same name where the output is
    // computed, in the layout of that place.
    const bool is_copy = result.weights_.find(name) != nullptr;
    result.weights_.add(is_copy && name == "token_embd.weight" ? "output.weight" : name, tensor);
    count_bytes(tensor, result.weight_bytes_);
  }
  result.vocab_ = std::make_unique<Vocab>(llama_model_get_vocab(model));
  return result;
}

}  // namespace plateau::model

#include "bench/llama_run.h"

#include <algorithm>

#include "base/check.h"
#include "base/stopwatch.h"
#include "kv/kv_cache.h"
#include "llama-cpp.h"
#include "model/log_capture.h"

namespace plateau::bench {
namespace {

/// M-RoPE: llama.cpp wants four position components for each row of embeddings, all of the first
/// component before the second.
int n_position_components(const llama_model* model) {
  const llama_rope_type type = llama_model_rope_type(model);
  return type == LLAMA_ROPE_TYPE_MROPE || type == LLAMA_ROPE_TYPE_IMROPE ? 4 : 1;
}

}  // namespace

struct LlamaRun::Handles {
  llama_model_ptr model;
  llama_context_ptr context;
};

LlamaRun::LlamaRun(const BenchPoint& point, const engine::RequestPlan& plan, int n_ubatch,
                   const CancelPoll& should_cancel)
    : point_(point),
      plan_(plan),
      n_ubatch_(n_ubatch),
      should_cancel_(should_cancel),
      handles_(std::make_unique<Handles>()) {
  const model::LogCapture log;
  const model::Device device = model::Device::find(point.engine.device);
  std::vector<ggml_backend_dev_t> devices;
  if (!device.is_cpu()) devices.push_back(device.handle());
  devices.push_back(nullptr);
  llama_model_params model_params = llama_model_default_params();
  model_params.devices = devices.data();
  model_params.n_gpu_layers = device.is_cpu() ? 0 : point.engine.n_gpu_layers;
  handles_->model.reset(llama_model_load_from_file(point.engine.model_path.c_str(), model_params));
  if (!handles_->model) {
    throw_error(ErrorCode::kCorrupt, "[{}] llama.cpp cannot load it: {}", point.engine.model_path,
                log.first_error("no reason given"));
  }

  llama_context_params params = llama_context_default_params();
  const int64_t n_ctx = plan.prompt.n_tokens() + point.n_decode;
  params.n_ctx = static_cast<uint32_t>(n_ctx);
  params.n_batch = static_cast<uint32_t>(n_ubatch);
  params.n_ubatch = params.n_batch;
  params.n_threads = point.engine.n_threads > 0 ? point.engine.n_threads : model::usable_cores();
  params.n_threads_batch = params.n_threads;
  params.type_k = kv::to_ggml(point.engine.cache_type_k);
  params.type_v = kv::to_ggml(point.engine.cache_type_v);
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  params.abort_callback = [](void* data) {
    const auto& poll = *static_cast<CancelPoll*>(data);
    return poll && poll();
  };
  params.abort_callback_data = &should_cancel_;
  handles_->context.reset(llama_init_from_model(handles_->model.get(), params));
  if (!handles_->context) {
    throw_error(ErrorCode::kResourceExhausted,
                "[llama.cpp] expected a context of {} tokens, got none: {}", n_ctx,
                log.first_error("no reason given"));
  }
}

LlamaRun::~LlamaRun() = default;

/// Either rows [n_embd, n] or tokens [n], at consecutive positions; logits of the last.
void LlamaRun::decode(std::vector<float>& rows, std::vector<int32_t>& tokens, int first_position) {
  const auto n_embd = static_cast<size_t>(llama_model_n_embd(handles_->model.get()));
  const size_t n = tokens.empty() ? rows.size() / n_embd : tokens.size();
  const int n_components = tokens.empty() ? n_position_components(handles_->model.get()) : 1;
  std::vector<llama_pos> positions;
  for (int component = 0; component < n_components; ++component) {
    for (size_t i = 0; i < n; ++i) {
      positions.push_back(component < 3 ? first_position + static_cast<int>(i) : 0);
    }
  }
  std::vector<int32_t> n_seq_id(n, 1);
  llama_seq_id sequence = 0;
  std::vector<llama_seq_id*> seq_id(n, &sequence);
  std::vector<int8_t> wants_logits(n, 0);
  wants_logits.back() = 1;
  llama_batch batch = {};
  batch.n_tokens = static_cast<int32_t>(n);
  batch.token = tokens.empty() ? nullptr : tokens.data();
  batch.embd = tokens.empty() ? rows.data() : nullptr;
  batch.pos = positions.data();
  batch.n_seq_id = n_seq_id.data();
  batch.seq_id = seq_id.data();
  batch.logits = wants_logits.data();
  const model::LogCapture log;
  const int status = llama_decode(handles_->context.get(), batch);
  llama_synchronize(handles_->context.get());
  if (should_cancel_ && should_cancel_()) throw_error(ErrorCode::kCancelled, "interrupted");
  if (status != 0) {
    throw_error(ErrorCode::kResourceExhausted,
                "[llama.cpp] expected to run {} tokens at position {}, got status {}: {}", n,
                first_position, status, log.first_error("no reason given"));
  }
}

LlamaTimes LlamaRun::run(std::span<const float> text_rows, BenchUnits& units) {
  const llama_model* model = handles_->model.get();
  llama_context* context = handles_->context.get();
  llama_memory_clear(llama_get_memory(context), /*data=*/true);
  RowReader reader(plan_.prompt, text_rows, llama_model_n_embd(model), units);
  LlamaTimes times;
  int n_done = 0;
  std::vector<int32_t> tokens;
  while (n_done < plan_.prompt.n_tokens()) {
    std::vector<float> rows = reader.next(n_ubatch_);
    const Stopwatch watch;
    decode(rows, tokens, n_done);
    times.ttft_ms += watch.ms();
    n_done += static_cast<int>(rows.size()) / llama_model_n_embd(model);
  }
  const int n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
  const float* logits = llama_get_logits_ith(context, -1);
  times.logits.assign(logits, logits + n_vocab);

  std::vector<float> rows;
  const Stopwatch watch;
  for (const int32_t token : random_tokens(point_.n_decode, n_vocab)) {
    tokens = {token};
    decode(rows, tokens, n_done++);
  }
  times.decode_ms = watch.ms();
  return times;
}

}  // namespace plateau::bench

#include "graph/block_runner.h"

#include <cmath>
#include <limits>

#include "base/check.h"
#include "graph/decoder.h"

namespace plateau::graph {
namespace {

bool on_node(ggml_tensor* tensor, bool ask, void* data) {
  if (!ask) (*static_cast<TensorTap*>(data))(tensor);
  return true;
}

/// As the graph's rotary embedding reads them: every row's t, and with M-RoPE then every row's h,
/// w and an unused 0.
std::vector<int32_t> position_numbers(std::span<const kv::Position> positions, int n_components) {
  const size_t n = positions.size();
  std::vector<int32_t> numbers(n * static_cast<size_t>(n_components), 0);
  for (size_t i = 0; i < n; ++i) numbers[i] = positions[i].t;
  if (n_components == 1) return numbers;
  for (size_t i = 0; i < n; ++i) {
    numbers[n + i] = positions[i].h;
    numbers[2 * n + i] = positions[i].w;
  }
  return numbers;
}

}  // namespace

BlockRunner::BlockRunner(const model::LanguageModel& model, const model::Backends& backends,
                         kv::KvCache& cache)
    : model_(model),
      backends_(backends),
      cache_(cache),
      sched_(backends.new_scheduler(max_graph_nodes(model.config()))) {}

void BlockRunner::set_tap(TensorTap tap) {
  tap_ = std::move(tap);
  ggml_backend_sched_set_eval_callback(sched_.get(), tap_ ? on_node : nullptr, &tap_);
}

std::vector<float> BlockRunner::embed(std::span<const model::Token> tokens) const {
  const model::ModelConfig& config = model_.config();
  for (const model::Token token : tokens) PLATEAU_CHECK(token >= 0 && token < config.n_vocab);
  std::vector<float> rows(tokens.size() * static_cast<size_t>(config.n_embd));
  if (tokens.empty()) return rows;

  constexpr size_t kNodes = 8;
  ggml_context_ptr context(ggml_init(
      {ggml_tensor_overhead() * kNodes + ggml_graph_overhead_custom(kNodes, /*grads=*/false),
       /*mem_buffer=*/nullptr, /*no_alloc=*/true}));
  PLATEAU_CHECK(context != nullptr);
  ggml_cgraph* graph = ggml_new_graph_custom(context.get(), kNodes, /*grads=*/false);
  ggml_tensor* ids =
      ggml_new_tensor_1d(context.get(), GGML_TYPE_I32, static_cast<int64_t>(tokens.size()));
  ggml_set_input(ids);
  ggml_tensor* out = ggml_get_rows(context.get(), model_.weights().get("token_embd.weight"), ids);
  ggml_set_output(out);
  ggml_build_forward_expand(graph, out);
  const ggml_backend_sched_ptr sched = backends_.new_scheduler(kNodes);
  backends_.compute(sched.get(), graph,
                    [&] { ggml_backend_tensor_set(ids, tokens.data(), 0, tokens.size_bytes()); });
  ggml_backend_tensor_get(out, rows.data(), 0, rows.size() * sizeof(float));
  return rows;
}

void BlockRunner::set_inputs(const Block& block, const BlockShape& shape, const BlockGraph& graph) {
  ggml_backend_tensor_set(graph.embeddings, block.embeddings.data(), 0,
                          block.embeddings.size_bytes());
  if (graph.positions->buffer != nullptr) {
    const std::vector<int32_t> numbers =
        position_numbers(block.positions, n_position_components(model_.config()));
    ggml_backend_tensor_set(graph.positions, numbers.data(), 0, numbers.size() * sizeof(int32_t));
  }
  std::vector<int64_t> slots(static_cast<size_t>(shape.n_rows));
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = shape.n_cached + static_cast<int64_t>(i);
  ggml_backend_tensor_set(graph.slots, slots.data(), 0, slots.size() * sizeof(int64_t));

  if (graph.mask->buffer != nullptr) {
    const ggml_fp16_t visible = ggml_fp32_to_fp16(0.0f);
    const ggml_fp16_t hidden = ggml_fp32_to_fp16(-std::numeric_limits<float>::infinity());
    const auto n_attended = static_cast<size_t>(shape.n_attended());
    mask_.assign(n_attended * static_cast<size_t>(shape.n_rows), hidden);
    for (int row = 0; row < shape.n_rows; ++row) {
      const auto begin = mask_.begin() + static_cast<std::ptrdiff_t>(n_attended) * row;
      std::fill(begin, begin + shape.n_cached + row + 1, visible);
    }
    ggml_backend_tensor_set(graph.mask, mask_.data(), 0, mask_.size() * sizeof(ggml_fp16_t));
  }
  if (graph.last_row != nullptr) {
    const int32_t last = shape.n_rows - shape.n_proxy - 1;
    ggml_backend_tensor_set(graph.last_row, &last, 0, sizeof(last));
  }
}

BlockResult BlockRunner::run(const Block& block) {
  const model::ModelConfig& config = model_.config();
  const BlockShape shape = {.n_rows = static_cast<int>(block.positions.size()),
                            .n_cached = block.n_cached,
                            .want_logits = block.want_logits,
                            .n_proxy = block.n_proxy,
                            .policy = block.policy,
                            .n_observed = block.n_observed};
  PLATEAU_CHECK(block.embeddings.size() ==
                block.positions.size() * static_cast<size_t>(config.n_embd));
  GraphBuilder builder(model_, cache_, shape);
  find_decoder(config.architecture)(builder);
  const BlockGraph graph = builder.finish();
  backends_.compute(sched_.get(), graph.graph, [&] { set_inputs(block, shape, graph); });

  BlockResult result;
  if (graph.logits != nullptr) {
    result.logits.resize(static_cast<size_t>(config.n_vocab));
    ggml_backend_tensor_get(graph.logits, result.logits.data(), 0,
                            result.logits.size() * sizeof(float));
  }
  for (const std::vector<ggml_tensor*>& layer : graph.signals) {
    std::vector<std::vector<float>>& values = result.signals.emplace_back();
    for (ggml_tensor* signal : layer) {
      std::vector<float>& out = values.emplace_back(static_cast<size_t>(ggml_nelements(signal)));
      ggml_backend_tensor_get(signal, out.data(), 0, out.size() * sizeof(float));
    }
  }
  return result;
}

std::vector<model::DeviceBytes> BlockRunner::measure(const BlockShape& shape) {
  GraphBuilder builder(model_, cache_, shape);
  find_decoder(model_.config().architecture)(builder);
  const BlockGraph graph = builder.finish();
  return backends_.measure(sched_.get(), graph.graph);
}

int64_t BlockRunner::compute_bytes() const { return model::scheduler_bytes(sched_.get()); }

}  // namespace plateau::graph

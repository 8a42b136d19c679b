// Tested by tests/evict/offline_eviction_test.cc.
#include "engine/offline_signals.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"

namespace plateau::engine {
namespace {

using arrays::Array;

// A graph works on as many heads as fit this; at least on one kv head with one of its query heads.
constexpr int64_t kWorkBytes = int64_t{128} << 20;
// From here on the pages of a head count; before, faulting them in again would cost more.
constexpr int kManyTokens = 16384;
constexpr size_t kMaxNodes = 256;

}  // namespace

/// Tensors of some kv heads, and some of the query heads that read them, in a context of their own.
struct OfflineSignals::Graph {
  Graph(const kv::Policy& policy, int head_dim, int n_held, int n_head_kv, int n_window, int n_head)
      : context(ggml_init({ggml_tensor_overhead() * kMaxNodes +
                               ggml_graph_overhead_custom(kMaxNodes, /*grads=*/false),
                           /*mem_buffer=*/nullptr, /*no_alloc=*/true})) {
    PLATEAU_CHECK(context != nullptr);
    ggml_context* ctx = context.get();
    graph = ggml_new_graph_custom(ctx, kMaxNodes, /*grads=*/false);
    k = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, head_dim, n_held, n_head_kv);
    v = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, head_dim, n_held, n_head_kv);
    ggml_set_input(k);
    ggml_set_input(v);
    if (policy.observes()) {
      q = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, head_dim, n_window, n_head);
      ggml_set_input(q);
    }
    // No mask: the queries come after all keys.
    signals = policy.build_signals(
        {.context = ctx, .k = k, .v = v, .q = q, .mask = nullptr, .n_held = n_held});
  }

  void add(ggml_tensor* signal) {
    ggml_set_output(signal);
    ggml_build_forward_expand(graph, signal);
  }

  bool reads(const ggml_tensor* input) const {
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
      const ggml_tensor* node = ggml_graph_node(graph, i);
      if (std::find(std::begin(node->src), std::end(node->src), input) != std::end(node->src)) {
        return true;
      }
    }
    return false;
  }

  ggml_context_ptr context;
  ggml_cgraph* graph = nullptr;
  ggml_tensor* k = nullptr;  // [head_dim, n_held, n_head_kv]
  ggml_tensor* v = nullptr;  // as k
  ggml_tensor* q = nullptr;  // [head_dim, n_window, n_head]; null when the policy does not observe
  std::vector<ggml_tensor*> signals;
};

/// The heads that one graph works on. A group too large for one graph is cut by query heads.
struct OfflineSignals::HeadRange {
  int kv_first = 0;
  int n_kv = 0;
  int q_first = 0;
  int n_q = 0;
  bool has_kv_signals = true;  // false: an earlier graph of the same kv head yields them
};

SignalNeeds signal_needs(const kv::Policy& policy) {
  using Graph = OfflineSignals::Graph;
  Graph one(policy, /*head_dim=*/4, /*n_held=*/2, /*n_head_kv=*/1, /*n_window=*/1, /*n_head=*/1);
  const Graph two(policy, /*head_dim=*/4, /*n_held=*/2, /*n_head_kv=*/1, /*n_window=*/1,
                  /*n_head=*/2);
  PLATEAU_CHECK(one.signals.size() == two.signals.size());
  SignalNeeds needs;
  for (size_t i = 0; i < one.signals.size(); ++i) {
    needs.is_per_query_head.push_back(ggml_nelements(two.signals[i]) !=
                                      ggml_nelements(one.signals[i]));
    one.add(one.signals[i]);
  }
  needs.queries = policy.observes();
  needs.values = one.reads(one.v);
  return needs;
}

OfflineSignals::OfflineSignals(const kv::Policy& policy, const SignalNeeds& needs,
                               const OfflineEviction& in, const OfflineShape& shape)
    : policy_(policy),
      needs_(needs),
      in_(in),
      shape_(shape),
      backends_(model::Device::cpu(), in.n_threads),
      sched_(backends_.new_scheduler(kMaxNodes)) {
  backends_.set_cancel_poll(in.should_cancel);
}

std::vector<OfflineSignals::HeadRange> OfflineSignals::plan_heads(int64_t n_held) const {
  // Scores of a query head and two more tensors of their size; a kv head's keys, values and copies.
  const int64_t q_bytes = n_held * std::max(1, shape_.n_window) * 3 * int64_t{sizeof(float)};
  const int64_t kv_bytes = n_held * shape_.head_dim * 6 * int64_t{sizeof(float)};
  const int n_group = shape_.n_group();
  const auto n_kv = static_cast<int>(
      std::clamp<int64_t>(kWorkBytes / (kv_bytes + n_group * q_bytes), 1, shape_.n_head_kv));
  const auto n_q_of_one = static_cast<int>(std::clamp<int64_t>(kWorkBytes / q_bytes, 1, n_group));
  std::vector<HeadRange> ranges;
  for (int kv = 0; kv < shape_.n_head_kv; kv += n_kv) {
    const int n = std::min(n_kv, shape_.n_head_kv - kv);
    const int q_step = n > 1 ? n * n_group : n_q_of_one;
    for (int q = 0; q < n * n_group; q += q_step) {
      ranges.push_back({.kv_first = kv,
                        .n_kv = n,
                        .q_first = kv * n_group + q,
                        .n_q = std::min(q_step, n * n_group - q),
                        .has_kv_signals = q == 0});
    }
  }
  return ranges;
}

std::vector<std::vector<float>> OfflineSignals::compute(const HeldTokens& held) {
  std::vector<std::vector<float>> signals(needs_.is_per_query_head.size());
  if (signals.empty()) return signals;
  const auto n_held = static_cast<int>(held.front().size());
  for (const HeadRange& heads : plan_heads(n_held)) {
    Graph graph(policy_, shape_.head_dim, n_held, heads.n_kv, shape_.n_window, heads.n_q);
    const auto is_wanted = [&](size_t i) {
      return heads.has_kv_signals || needs_.is_per_query_head[i];
    };
    for (size_t i = 0; i < signals.size(); ++i) {
      if (is_wanted(i)) graph.add(graph.signals[i]);
    }
    backends_.compute(sched_.get(), graph.graph, [&] { set_inputs(graph, heads, held); });
    if (heads.n_kv == 1 && n_held > kManyTokens) {
      in_.keys->forget();
      if (in_.values != nullptr) in_.values->forget();
    }
    for (size_t i = 0; i < signals.size(); ++i) {
      if (!is_wanted(i)) continue;
      const size_t n_before = signals[i].size();
      signals[i].resize(n_before + static_cast<size_t>(ggml_nelements(graph.signals[i])));
      ggml_backend_tensor_get(graph.signals[i], signals[i].data() + n_before, 0,
                              ggml_nbytes(graph.signals[i]));
      check_overflow(in_, std::span(signals[i]).subspan(n_before));
    }
  }
  return signals;
}

void OfflineSignals::set_inputs(const Graph& graph, const HeadRange& heads,
                                const HeldTokens& held) const {
  gather(graph.k, in_.keys, heads, held);
  gather(graph.v, in_.values, heads, held);
  if (graph.q == nullptr || graph.q->buffer == nullptr) return;
  const std::span out(ggml_get_data_f32(graph.q), static_cast<size_t>(ggml_nelements(graph.q)));
  in_.queries->read(int64_t{heads.q_first} * shape_.n_window * shape_.head_dim, out);
}

/// Rows of the held tokens, run by run. A tensor without a buffer is not read by the graph.
void OfflineSignals::gather(ggml_tensor* to, const Array* from, const HeadRange& heads,
                            const HeldTokens& held) const {
  if (to->buffer == nullptr) return;
  PLATEAU_CHECK(from != nullptr);
  float* out = ggml_get_data_f32(to);
  for (int head = heads.kv_first; head < heads.kv_first + heads.n_kv; ++head) {
    const std::vector<int32_t>& tokens = held[static_cast<size_t>(head)];
    for (size_t begin = 0; begin < tokens.size();) {
      size_t end = begin + 1;
      while (end < tokens.size() && tokens[end] == tokens[end - 1] + 1) ++end;
      const size_t n = (end - begin) * static_cast<size_t>(shape_.head_dim);
      from->read((int64_t{head} * shape_.n_tokens + tokens[begin]) * shape_.head_dim,
                 std::span(out, n));
      out += n;
      begin = end;
    }
  }
}

void check_overflow(const OfflineEviction& in, std::span<const float> computed) {
  if (std::all_of(computed.begin(), computed.end(), [](float x) { return std::isfinite(x); })) {
    return;
  }
  throw_error(ErrorCode::kCorrupt,
              "[{}] expected numbers small enough to be scored in f32, policy {} overflowed",
              in.keys->where, in.policy);
}

}  // namespace plateau::engine

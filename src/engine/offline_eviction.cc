// Tested by tests/evict/offline_eviction_test.cc.
#include "engine/offline_eviction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>

#include "base/check.h"
#include "kv/evictor.h"
#include "kv/policy.h"
#include "kv/select.h"
#include "model/backend.h"

namespace plateau::engine {
namespace {

using arrays::Array;
using arrays::DType;

// A graph works on as many heads as fit this; at least one kv head with one of its query heads.
constexpr int64_t kWorkBytes = int64_t{128} << 20;
constexpr size_t kMaxNodes = 256;
// Grid pooling lays out one int per cell of each plane's bounding box.
constexpr int64_t kMaxGridCells = int64_t{1} << 26;
constexpr double kMaxCoordinate = 1e6;

struct Shape {
  int n_head = 0;  // n_head_kv where there are no queries
  int n_head_kv = 0;
  int n_tokens = 0;
  int n_window = 0;  // 0: no queries
  int head_dim = 0;

  int n_group() const { return n_head / n_head_kv; }
};

// ---- Checks. Whatever ggml would assert on is refused here. ----

void check_floats(const Array& array, const char* what) {
  const bool is_float =
      array.dtype == DType::kF32 || array.dtype == DType::kF16 || array.dtype == DType::kBf16;
  if (is_float) return;
  throw_error(ErrorCode::kUnsupported, "[{}] expected {} in f32, f16 or bf16, got '{}'; try f32",
              array.where, what, array.dtype_name);
}

[[noreturn]] void wrong_shape(const Array& array, const char* what, const std::string& expected) {
  throw_error(ErrorCode::kInvalidArgument, "[{}] expected {} of shape {}, got {}", array.where,
              what, expected, arrays::shape_text(array.shape));
}

Shape check_shapes(const OfflineEviction& in) {
  constexpr int64_t kMaxInt = std::numeric_limits<int32_t>::max();
  constexpr int64_t kMaxHeads = 4096;
  constexpr int64_t kMaxHeadDim = 65536;
  if (in.keys == nullptr) {
    throw_error(ErrorCode::kInvalidArgument, "[evict] expected keys, got none; try --keys K.npy");
  }
  const auto& k = in.keys->shape;
  if (k.size() != 3 || k[0] < 1 || k[1] < 1 || k[2] < 1 || k[0] > kMaxHeads || k[1] >= kMaxInt ||
      k[2] > kMaxHeadDim) {
    wrong_shape(*in.keys, "keys", "[n_head_kv, T, head_dim], each at least 1");
  }
  Shape shape;
  shape.n_head_kv = static_cast<int>(k[0]);
  shape.n_tokens = static_cast<int>(k[1]);
  shape.head_dim = static_cast<int>(k[2]);
  shape.n_head = shape.n_head_kv;
  if (in.queries != nullptr) {
    const auto& q = in.queries->shape;
    if (q.size() != 3 || q[0] < 1 || q[0] % k[0] != 0 || q[0] > kMaxHeads || q[1] < 1 ||
        q[1] > 1024 || q[2] != k[2]) {
      wrong_shape(
          *in.queries, "queries",
          fmt::format("[a multiple of {}, 1 to 1024, {}] (n_head, W, head_dim)", k[0], k[2]));
    }
    shape.n_head = static_cast<int>(q[0]);
    shape.n_window = static_cast<int>(q[1]);
  }
  if (in.values != nullptr && in.values->shape != k) {
    wrong_shape(*in.values, "values", arrays::shape_text(k) + ", that of the keys");
  }
  if (in.positions != nullptr && in.positions->shape != std::vector<int64_t>{k[1], 3}) {
    wrong_shape(*in.positions, "positions", fmt::format("[{}, 3] (t, h, w)", k[1]));
  }
  return shape;
}

void check_finite(const Array* array, const char* what) {
  if (array == nullptr) return;
  check_floats(*array, what);
  std::vector<float> buffer(size_t{1} << 16);
  const int64_t n = array->n_elements();
  for (int64_t first = 0; first < n; first += static_cast<int64_t>(buffer.size())) {
    const auto n_part = std::min<int64_t>(n - first, static_cast<int64_t>(buffer.size()));
    const std::span part(buffer.data(), static_cast<size_t>(n_part));
    array->read(first, part);
    const auto bad =
        std::find_if(part.begin(), part.end(), [](float x) { return !std::isfinite(x); });
    if (bad == part.end()) continue;
    int64_t index = first + (bad - part.begin());
    std::vector<int64_t> at(array->shape.size());
    for (size_t i = at.size(); i-- > 0; index /= array->shape[i]) at[i] = index % array->shape[i];
    throw_error(ErrorCode::kCorrupt, "[{}] expected finite {}, got {} at {}", array->where, what,
                *bad, arrays::shape_text(at));
  }
}

void check_options(const OfflineEviction& in) {
  const auto require = [](bool condition, const char* option, const std::string& expected,
                          int got) {
    if (condition) return;
    throw_error(ErrorCode::kInvalidArgument, "[{}] expected {}, got {}", option, expected, got);
  };
  require(in.block >= 0, "--block", "a number of keys, or 0 for all at once", in.block);
  require(in.n_sinks >= 0, "--sinks", "a number of keys", in.n_sinks);
  require(in.n_recent >= 0, "--recent", "a number of keys", in.n_recent);
  if (in.policy == kv::kFullPolicy) return;
  require(in.budget >= 1, "--budget", "at least 1 key", in.budget);
  const int64_t n_protected = int64_t{in.n_sinks} + in.n_recent;
  require(in.budget >= n_protected, "--budget",
          fmt::format("at least the {} keys that --sinks and --recent protect", n_protected),
          in.budget);
  if (in.policy_options.pool_axis == PoolAxis::kGrid && in.positions == nullptr) {
    throw_error(ErrorCode::kInvalidArgument,
                "[--pool-axis] grid expects the keys' places, got none; try --positions P.npy");
  }
}

struct Box {
  int32_t h0, h1, w0, w1;
  int64_t n_cells() const { return (int64_t{h1} - h0 + 1) * (int64_t{w1} - w0 + 1); }
};

std::vector<kv::TokenInfo> token_info(const OfflineEviction& in, const Shape& shape) {
  std::vector<kv::TokenInfo> info(static_cast<size_t>(shape.n_tokens));
  for (size_t i = 0; i < info.size(); ++i) info[i].position = static_cast<int32_t>(i);
  if (in.positions == nullptr) return info;
  const Array& positions = *in.positions;
  if (positions.dtype == DType::kOther) {
    throw_error(ErrorCode::kUnsupported, "[{}] expected positions as numbers, got '{}'; try i32",
                positions.where, positions.dtype_name);
  }
  std::map<int32_t, Box> planes;
  int64_t n_cells = 0;
  for (size_t i = 0; i < info.size(); ++i) {
    std::array<double, 3> thw;
    positions.read(static_cast<int64_t>(i) * 3, std::span<double>(thw));
    for (const double x : thw) {
      if (!(std::abs(x) <= kMaxCoordinate) || x != std::floor(x)) {
        throw_error(ErrorCode::kCorrupt,
                    "[{}] expected whole numbers of at most {} as positions, got {} in row {}",
                    positions.where, kMaxCoordinate, x, i);
      }
    }
    kv::TokenInfo& token = info[i];
    token.position = static_cast<int32_t>(thw[0]);
    token.plane = std::max(token.position, -1);
    token.h = static_cast<int32_t>(thw[1]);
    token.w = static_cast<int32_t>(thw[2]);
    if (token.plane < 0) continue;
    const auto [at, is_new] =
        planes.try_emplace(token.plane, Box{token.h, token.h, token.w, token.w});
    Box& box = at->second;
    n_cells -= is_new ? 0 : box.n_cells();
    box = {std::min(box.h0, token.h), std::max(box.h1, token.h), std::min(box.w0, token.w),
           std::max(box.w1, token.w)};
    n_cells += box.n_cells();
  }
  if (n_cells > kMaxGridCells) {
    throw_error(ErrorCode::kResourceExhausted,
                "[{}] expected grids of at most {} cells in all, got {}", positions.where,
                kMaxGridCells, n_cells);
  }
  return info;
}

// ---- Signals ----

/// Tensors of some kv heads, and some of the query heads that read them, in a context of their own.
struct SignalGraph {
  SignalGraph(const kv::Policy& policy, int head_dim, int n_held, int n_head_kv, int n_window,
              int n_head)
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

/// What one policy computes on the device, found out by building a graph that is never run.
struct SignalPlan {
  explicit SignalPlan(const kv::Policy& policy) {
    SignalGraph one(policy, /*head_dim=*/4, /*n_held=*/2, /*n_head_kv=*/1, /*n_window=*/1,
                    /*n_head=*/1);
    const SignalGraph two(policy, /*head_dim=*/4, /*n_held=*/2, /*n_head_kv=*/1, /*n_window=*/1,
                          /*n_head=*/2);
    PLATEAU_CHECK(one.signals.size() == two.signals.size());
    for (size_t i = 0; i < one.signals.size(); ++i) {
      is_per_query_head.push_back(ggml_nelements(two.signals[i]) != ggml_nelements(one.signals[i]));
      one.add(one.signals[i]);
    }
    needs_values = one.reads(one.v);
  }

  std::vector<bool> is_per_query_head;
  bool needs_values = false;
};

/// The heads that one graph works on. A group too large for one graph is cut by query heads.
struct HeadRange {
  int kv_first = 0;
  int n_kv = 0;
  int q_first = 0;
  int n_q = 0;
  bool has_kv_signals = true;  // another graph of the same kv head yields them otherwise
};

std::vector<HeadRange> plan_heads(const Shape& shape, int64_t n_held) {
  // Scores of a query head and two more tensors of their size; a kv head's keys, values and copies.
  const int64_t q_bytes = n_held * std::max(1, shape.n_window) * 3 * int64_t{sizeof(float)};
  const int64_t kv_bytes = n_held * shape.head_dim * 6 * int64_t{sizeof(float)};
  const int n_group = shape.n_group();
  const auto n_kv = static_cast<int>(
      std::clamp<int64_t>(kWorkBytes / (kv_bytes + n_group * q_bytes), 1, shape.n_head_kv));
  const auto n_q_of_one = static_cast<int>(std::clamp<int64_t>(kWorkBytes / q_bytes, 1, n_group));
  std::vector<HeadRange> ranges;
  for (int kv = 0; kv < shape.n_head_kv; kv += n_kv) {
    const int n = std::min(n_kv, shape.n_head_kv - kv);
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

using Held = std::vector<std::vector<int32_t>>;  // per kv head, ascending

class SignalSource {
 public:
  SignalSource(const kv::Policy& policy, const SignalPlan& plan, const OfflineEviction& in,
               const Shape& shape)
      : policy_(policy),
        plan_(plan),
        in_(in),
        shape_(shape),
        backends_(model::Device::cpu(), in.n_threads) {
    backends_.set_cancel_poll(in.should_cancel);
    sched_ = backends_.new_scheduler(kMaxNodes);
  }

  /// The policy's signals over the held keys, as from one graph of the whole layer.
  std::vector<std::vector<float>> compute(const Held& held) {
    std::vector<std::vector<float>> signals(plan_.is_per_query_head.size());
    if (signals.empty()) return signals;
    const auto n_held = static_cast<int>(held.front().size());
    for (const HeadRange& heads : plan_heads(shape_, n_held)) {
      SignalGraph graph(policy_, shape_.head_dim, n_held, heads.n_kv, shape_.n_window, heads.n_q);
      const auto is_wanted = [&](size_t i) {
        return heads.has_kv_signals || plan_.is_per_query_head[i];
      };
      for (size_t i = 0; i < signals.size(); ++i) {
        if (is_wanted(i)) graph.add(graph.signals[i]);
      }
      backends_.compute(sched_.get(), graph.graph, [&] { set_inputs(graph, heads, held); });
      for (size_t i = 0; i < signals.size(); ++i) {
        if (is_wanted(i)) append(graph.signals[i], signals[i]);
      }
    }
    return signals;
  }

 private:
  void set_inputs(const SignalGraph& graph, const HeadRange& heads, const Held& held) const {
    gather(graph.k, in_.keys, heads, held);
    gather(graph.v, in_.values, heads, held);
    if (graph.q == nullptr || graph.q->buffer == nullptr) return;
    const int64_t n_per_head = int64_t{shape_.n_window} * shape_.head_dim;
    in_.queries->read(
        heads.q_first * n_per_head,
        std::span(ggml_get_data_f32(graph.q), static_cast<size_t>(ggml_nelements(graph.q))));
  }

  /// Rows of the held tokens, run by run. A tensor without a buffer is not read by the graph.
  void gather(ggml_tensor* to, const Array* from, const HeadRange& heads, const Held& held) const {
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

  void append(ggml_tensor* signal, std::vector<float>& out) const {
    const size_t n_before = out.size();
    out.resize(n_before + static_cast<size_t>(ggml_nelements(signal)));
    ggml_backend_tensor_get(signal, out.data() + n_before, 0, ggml_nbytes(signal));
    check_overflow(std::span(out).subspan(n_before));
  }

 public:
  void check_overflow(std::span<const float> computed) const {
    if (std::all_of(computed.begin(), computed.end(), [](float x) { return std::isfinite(x); })) {
      return;
    }
    throw_error(ErrorCode::kCorrupt,
                "[{}] expected numbers small enough to be scored in f32, policy {} overflowed",
                in_.keys->where, in_.policy);
  }

 private:
  const kv::Policy& policy_;
  const SignalPlan& plan_;
  const OfflineEviction& in_;
  const Shape& shape_;
  model::Backends backends_;
  ggml_backend_sched_ptr sched_;
};

// ---- The block loop ----

class BlockLoop {
 public:
  BlockLoop(const kv::Policy& policy, const SignalPlan& plan, const OfflineEviction& in,
            const Shape& shape)
      : policy_(policy),
        in_(in),
        shape_(shape),
        info_(token_info(in, shape)),
        source_(policy, plan, in, shape),
        held_(static_cast<size_t>(shape.n_head_kv)) {}

  OfflineEvictionResult run() {
    const int block = in_.block == 0 ? shape_.n_tokens : in_.block;
    for (int n_seen = 0; n_seen < shape_.n_tokens;) {
      if (in_.should_cancel && in_.should_cancel()) {
        throw_error(ErrorCode::kCancelled, "interrupted");
      }
      const int n_new = std::min(block, shape_.n_tokens - n_seen);
      for (std::vector<int32_t>& tokens : held_) {
        tokens.resize(tokens.size() + static_cast<size_t>(n_new));
        std::iota(tokens.end() - n_new, tokens.end(), n_seen);
      }
      n_seen += n_new;
      const bool is_last = n_seen == shape_.n_tokens;
      const bool is_full = held_.front().size() > static_cast<size_t>(in_.budget) &&
                           (is_last || !policy_.evicts_only_at_end());
      // Where the last block evicts nothing, nothing was ever evicted: one scoring, to show it.
      if (is_full || (is_last && in_.want_scores)) score();
      if (is_last && in_.want_scores) report_scores();
      if (is_full) select(n_seen);
    }
    result_.kept = std::move(held_);
    return std::move(result_);
  }

 private:
  void score() {
    kv::LayerSlots layer;
    layer.n_head = shape_.n_head;
    layer.n_head_kv = shape_.n_head_kv;
    layer.n_held = static_cast<int>(held_.front().size());
    layer.tokens.assign(held_.begin(), held_.end());
    layer.info = info_;
    scores_ = kv::score_layer(policy_, source_.compute(held_), layer);
    source_.check_overflow(scores_);
  }

  void select(int n_seen) {
    const size_t n_held = held_.front().size();
    std::vector<uint8_t> is_protected(n_held);
    for (size_t head = 0; head < held_.size(); ++head) {
      std::vector<int32_t>& tokens = held_[head];
      for (size_t slot = 0; slot < n_held; ++slot) {
        is_protected[slot] =
            tokens[slot] < in_.n_sinks || tokens[slot] >= n_seen - in_.n_recent ? 1 : 0;
      }
      std::vector<int32_t> kept = kv::select_kept(std::span(scores_).subspan(head * n_held, n_held),
                                                  is_protected, in_.budget);
      for (int32_t& slot : kept) slot = tokens[static_cast<size_t>(slot)];
      tokens = std::move(kept);
    }
  }

  void report_scores() {
    const size_t n_held = held_.front().size();
    result_.scores.assign(held_.size(),
                          std::vector<std::optional<float>>(static_cast<size_t>(shape_.n_tokens)));
    for (size_t head = 0; head < held_.size(); ++head) {
      for (size_t slot = 0; slot < n_held; ++slot) {
        result_.scores[head][static_cast<size_t>(held_[head][slot])] =
            scores_[head * n_held + slot];
      }
    }
  }

  const kv::Policy& policy_;
  const OfflineEviction& in_;
  const Shape& shape_;
  std::vector<kv::TokenInfo> info_;  // by token
  SignalSource source_;
  Held held_;
  std::vector<float> scores_;  // of the last scoring: [n_held, n_head_kv]
  OfflineEvictionResult result_;
};

OfflineEvictionResult keep_all(const OfflineEviction& in, const Shape& shape) {
  OfflineEvictionResult result;
  std::vector<int32_t> all(static_cast<size_t>(shape.n_tokens));
  std::iota(all.begin(), all.end(), 0);
  result.kept.assign(static_cast<size_t>(shape.n_head_kv), all);
  if (in.want_scores) {
    result.scores.assign(result.kept.size(), std::vector<std::optional<float>>(all.size()));
  }
  return result;
}

void require_array(const Array* array, const OfflineEviction& in, const char* what,
                   const char* option) {
  if (array != nullptr) return;
  throw_error(ErrorCode::kInvalidArgument, "[--policy] {} expects {}, got none; try {}", in.policy,
              what, option);
}

}  // namespace

OfflineEvictionResult evict_offline(const OfflineEviction& in) {
  PLATEAU_CHECK(in.n_threads >= 1);
  // The options first: they cost nothing, the arrays have to be read.
  PolicyOptions options = in.policy_options;
  options.window = 1;  // the queries say how many there are
  std::unique_ptr<kv::Policy> policy;
  if (in.policy != kv::kFullPolicy) policy = kv::make_policy(in.policy, options);
  check_options(in);
  const Shape shape = check_shapes(in);
  std::optional<SignalPlan> plan;
  if (policy) {
    plan.emplace(*policy);
    if (policy->observes()) require_array(in.queries, in, "queries", "--queries Q.npy");
    if (plan->needs_values) require_array(in.values, in, "values", "--values V.npy");
  }
  check_finite(in.keys, "keys");
  check_finite(in.queries, "queries");
  check_finite(in.values, "values");
  if (!policy) return keep_all(in, shape);
  return BlockLoop(*policy, *plan, in, shape).run();
}

}  // namespace plateau::engine

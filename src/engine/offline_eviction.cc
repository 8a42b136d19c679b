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
#include "engine/offline_signals.h"
#include "kv/evictor.h"
#include "kv/policy.h"
#include "kv/select.h"

namespace plateau::engine {
namespace {

using arrays::Array;
using arrays::DType;

// Grid pooling lays out one int per cell of each plane's bounding box.
constexpr int64_t kMaxGridCells = int64_t{1} << 26;
constexpr double kMaxCoordinate = 1e6;

// Whatever ggml would assert on is refused here.

void check_floats(const Array& array, const char* what) {
  const bool is_float =
      array.dtype == DType::kF32 || array.dtype == DType::kF16 || array.dtype == DType::kBf16;
  if (is_float) return;
  throw_error(ErrorCode::kUnsupported, "[{}] expected {} in f32, f16 or bf16, got '{}'; try f32",
              array.where, what, array.dtype_name);
}

[[noreturn]] void wrong_shape(const Array& array, const char* what, const std::string& expected) {
  throw_error(ErrorCode::kCorrupt, "[{}] expected {} of shape {}, got {}", array.where, what,
              expected, arrays::shape_text(array.shape));
}

OfflineShape check_shapes(const OfflineEviction& in) {
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
  OfflineShape shape;
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

// Squares of larger numbers overflow f32, and a norm that overflows ranks nothing.
constexpr float kMaxMagnitude = 1e18f;

void check_finite(const Array* array, const char* what) {
  if (array == nullptr) return;
  check_floats(*array, what);
  std::vector<float> buffer(size_t{1} << 16);
  constexpr int64_t kForgetEvery = int64_t{1} << 24;  // elements
  const int64_t n = array->n_elements();
  for (int64_t first = 0; first < n; first += static_cast<int64_t>(buffer.size())) {
    const auto n_part = std::min<int64_t>(n - first, static_cast<int64_t>(buffer.size()));
    const std::span part(buffer.data(), static_cast<size_t>(n_part));
    if (first % kForgetEvery == 0) array->forget();
    array->read(first, part);
    const auto bad = std::find_if(part.begin(), part.end(),
                                  [](float x) { return !(std::abs(x) <= kMaxMagnitude); });
    if (bad == part.end()) continue;
    int64_t index = first + (bad - part.begin());
    std::vector<int64_t> at(array->shape.size());
    for (size_t i = at.size(); i-- > 0; index /= array->shape[i]) at[i] = index % array->shape[i];
    throw_error(ErrorCode::kCorrupt, "[{}] expected finite {}, got {} at {}{}", array->where, what,
                *bad, arrays::shape_text(at),
                std::isfinite(*bad) ? "; squares beyond 1e18 overflow" : "");
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

std::vector<kv::TokenInfo> token_info(const OfflineEviction& in, const OfflineShape& shape) {
  std::vector<kv::TokenInfo> info(static_cast<size_t>(shape.n_tokens));
  for (size_t i = 0; i < info.size(); ++i) {
    info[i].position = kv::Position::sequential(static_cast<int32_t>(i));
  }
  if (in.positions == nullptr) return info;
  const Array& positions = *in.positions;
  if (positions.dtype == DType::kOther) {
    throw_error(ErrorCode::kUnsupported, "[{}] expected positions as numbers, got '{}'; try i32",
                positions.where, positions.dtype_name);
  }
  std::map<int32_t, Box> planes;
  int64_t n_cells = 0;
  for (size_t i = 0; i < info.size(); ++i) {
    std::array<double, 3> thw = {};
    positions.read(static_cast<int64_t>(i) * 3, std::span<double>(thw));
    for (const double x : thw) {
      if (!(std::abs(x) <= kMaxCoordinate) || x != std::floor(x)) {
        throw_error(ErrorCode::kCorrupt,
                    "[{}] expected whole numbers of at most {} as positions, got {} in row {}",
                    positions.where, kMaxCoordinate, x, i);
      }
    }
    kv::TokenInfo& token = info[i];
    token.position = {.t = static_cast<int32_t>(thw[0]),
                      .h = static_cast<int32_t>(thw[1]),
                      .w = static_cast<int32_t>(thw[2])};
    token.plane = std::max(token.position.t, -1);
    token.h = token.position.h;
    token.w = token.position.w;
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

class BlockLoop {
 public:
  BlockLoop(const kv::Policy& policy, const SignalNeeds& needs, const OfflineEviction& in,
            const OfflineShape& shape)
      : policy_(policy),
        in_(in),
        shape_(shape),
        info_(token_info(in, shape)),
        source_(policy, needs, in, shape),
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
    for (const std::vector<int32_t>& tokens : held_) {
      std::vector<kv::TokenInfo>& info = layer.info.emplace_back();
      for (const int32_t token : tokens) info.push_back(info_[static_cast<size_t>(token)]);
    }
    scores_ = kv::score_layer(policy_, source_.compute(held_), layer);
    check_overflow(in_, scores_);
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
  const OfflineShape& shape_;
  std::vector<kv::TokenInfo> info_;  // by token
  OfflineSignals source_;
  HeldTokens held_;
  std::vector<float> scores_;  // of the last scoring: [n_held, n_head_kv]
  OfflineEvictionResult result_;
};

OfflineEvictionResult keep_all(const OfflineEviction& in, const OfflineShape& shape) {
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
  const bool is_full = in.policy == kv::kFullPolicy;
  PolicyOptions options = in.policy_options;
  options.window = 1;  // the queries say how many there are
  const std::unique_ptr<kv::Policy> policy =
      is_full ? nullptr : kv::make_policy(in.policy, options);
  check_options(in);
  const OfflineShape shape = check_shapes(in);
  const SignalNeeds needs = is_full ? SignalNeeds{} : signal_needs(*policy);
  if (needs.queries) require_array(in.queries, in, "queries", "--queries Q.npy");
  if (needs.values) require_array(in.values, in, "values", "--values V.npy");
  check_finite(in.keys, "keys");
  check_finite(in.queries, "queries");
  check_finite(in.values, "values");
  if (is_full) return keep_all(in, shape);
  return BlockLoop(*policy, needs, in, shape).run();
}

}  // namespace plateau::engine

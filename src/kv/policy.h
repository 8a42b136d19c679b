// The contract of an eviction policy. Scoring has two halves:
//
//   build_signals    on the device: adds nodes to the block's graph and returns small tensors that
//                    are computed from queries, keys or values;
//   score            on the host: turns the signals of one layer into one score per (kv head,
//   slot).
//                    Higher is kept.
//
// Selecting, protecting and compacting are written once, elsewhere (select.h, compact.h).
// How to add one: docs/adding-a-policy.md. Policies are stateless; one object may serve all layers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kv/token_info.h"
#include "plateau/options.h"

struct ggml_context;
struct ggml_tensor;

namespace plateau::kv {

/// Tensors of one layer that signals are computed from.
struct SignalInputs {
  ggml_context* context = nullptr;
  ggml_tensor* k = nullptr;  // rotated keys, [head_dim, n_attended, n_head_kv]
  ggml_tensor* v = nullptr;  // values, as k
  /// Rotated queries of the observing rows: f32 [head_dim, n_observed, n_head].
  ggml_tensor* q = nullptr;
  /// f16 [n_attended, n_observed]: 0 where an observing row sees a slot, -inf elsewhere.
  ggml_tensor* mask = nullptr;
  int n_held = 0;  // slots that are ranked: the first n_held of n_attended
};

/// One layer on the host.
struct LayerSlots {
  int il = 0;
  int n_head = 0;
  int n_head_kv = 0;
  int n_held = 0;
  /// Per kv head the tokens in slots [0, n_held), ascending: [n_held, n_head_kv].
  std::vector<std::span<const int32_t>> tokens;
  /// What those tokens are, likewise.
  std::vector<std::vector<TokenInfo>> info;
};

class Policy {
 public:
  virtual ~Policy() = default;

  /// Needs the queries of observing rows: proxy queries run with each evicting block.
  virtual bool observes() const { return false; }
  /// With observes(): the rows are the prompt's last tokens, so the question must be known. Without
  /// it, the block's own last rows observe.
  virtual bool needs_question() const { return false; }
  /// Holds the whole prompt and evicts once, before decoding.
  virtual bool evicts_only_at_end() const { return false; }

  /// f32 tensors, in the order that score() takes them; the builder marks them as outputs.
  virtual std::vector<ggml_tensor*> build_signals(const SignalInputs& inputs) const {
    (void)inputs;
    return {};
  }

  /// `signals[i]` holds the values of build_signals()[i]; scores: [n_held, n_head_kv].
  virtual void score(const LayerSlots& layer, std::span<const std::vector<float>> signals,
                     std::span<float> scores) const = 0;
};

struct PolicyEntry {
  const char* name;
  const char* summary;  // one line, for help
  std::unique_ptr<Policy> (*make)(const PolicyOptions& options);
};

/// All policies, in the order of the documentation.
std::span<const PolicyEntry> policies();

/// Errors: kInvalidArgument: an unknown name (the nearest is suggested) or an option out of range.
std::unique_ptr<Policy> make_policy(const std::string& name, const PolicyOptions& options);

/// "full" is no eviction at all; it is a name for --policy but no Policy.
inline constexpr const char* kFullPolicy = "full";

}  // namespace plateau::kv

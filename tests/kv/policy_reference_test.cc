// Scores and kept sets of the policies against plain loops in double precision written from the
// formulas, on random and on adversarial keys.
#include "kv/reference_policies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml.h"
#include "kv/draw.h"
#include "kv/evictor.h"
#include "kv/kv_cache.h"
#include "kv/policy.h"
#include "kv/select.h"
#include "model/backend.h"
#include "plateau/error.h"

namespace plateau::test {
namespace {

// Errors are relative to the largest score of the layer. Ours: f32 sums of 32 products and of up to
// 200 weights. Each number is some ten times what was measured.
constexpr double kTolerance = 1e-5;
// Keys of norm up to 3000 give logits of several thousand, whose rounding to f32 is some 1e-4 in
// the exponent.
constexpr double kHugeTolerance = 2e-4;
// The mix stretches cosines that may differ in their fourth digit only to [0, 1], and the rounding
// of f32 with them.
constexpr double kMixTolerance = 5e-3;
// ggml multiplies f16 keys with queries rounded to f16 and q8_0 keys with queries rounded to q8_0.
// The tolerances above are for a reference that is given the rounded queries; these are for the
// formula itself.
constexpr double kRoundedQueryTolerance[] = {kTolerance, 2e-3, 3e-2};  // f32, f16, q8_0
constexpr ggml_type kTypes[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0};

// Where production and reference keep different tokens although no two scores tie, the tokens'
// scores must be this close to the cut (in tolerances), and there may be no more of them than this.
constexpr double kMargin = 2;
constexpr double kMaxShareOfClosest = 0.01;

using Kind = std::function<void(Rng&, int head_dim, std::vector<float>& keys)>;

struct KeyKind {
  const char* name;
  Kind make;  // keys come in as random ones
  /// Norms over six decades: attention to most keys underflows in f32, so that older ones stay
  /// where the reference still sees a difference of 1e-60.
  bool is_huge = false;
  /// Scores tie exactly in the reference, and up to the last bit in f32.
  bool is_equal = false;
};

void scale_row(std::vector<float>& keys, size_t row, int head_dim, float factor) {
  const auto d = static_cast<size_t>(head_dim);
  for (size_t i = row * d; i < (row + 1) * d; ++i) keys[i] *= factor;
}

const std::vector<KeyKind>& key_kinds() {
  static const std::vector<KeyKind> kinds = {
      {"random", [](Rng&, int, std::vector<float>&) {}},
      {"ties",  // each key is one of the first five
       [](Rng& rng, int head_dim, std::vector<float>& keys) {
         const auto d = static_cast<size_t>(head_dim);
         for (size_t row = 5; row < keys.size() / d; ++row) {
           std::memcpy(&keys[row * d], &keys[static_cast<size_t>(draw(rng, 0, 4)) * d],
                       d * sizeof(float));
         }
       }},
      {"zeros",
       [](Rng& rng, int head_dim, std::vector<float>& keys) {
         for (size_t row = 0; row < keys.size() / static_cast<size_t>(head_dim); ++row) {
           if (draw(rng, 0, 2) == 0) scale_row(keys, row, head_dim, 0.0F);
         }
       }},
      {"dominant_direction",
       [](Rng& rng, int head_dim, std::vector<float>& keys) {
         const std::vector<float> direction = draw_normal(rng, static_cast<size_t>(head_dim));
         for (size_t i = 0; i < keys.size(); ++i) {
           keys[i] = 0.1F * keys[i] + 3.0F * direction[i % direction.size()];
         }
       }},
      {"all_equal",
       [](Rng&, int head_dim, std::vector<float>& keys) {
         for (size_t i = static_cast<size_t>(head_dim); i < keys.size(); ++i) {
           keys[i] = keys[i % static_cast<size_t>(head_dim)];
         }
       },
       /*is_huge=*/false, /*is_equal=*/true},
      {"huge_and_small",
       [](Rng& rng, int head_dim, std::vector<float>& keys) {
         for (size_t row = 0; row < keys.size() / static_cast<size_t>(head_dim); ++row) {
           scale_row(keys, row, head_dim,
                     static_cast<float>(std::pow(10.0, 6.0 * draw_unit(rng) - 3.0)));
         }
       },
       /*is_huge=*/true},
  };
  return kinds;
}

/// To the type and back.
std::vector<float> rounded(const std::vector<float>& x, ggml_type type) {
  if (type == GGML_TYPE_F32) return x;
  const auto n = static_cast<int64_t>(x.size());
  std::vector<char> stored(ggml_row_size(type, n));
  ggml_get_type_traits(type)->from_float_ref(x.data(), stored.data(), n);
  std::vector<float> result(x.size());
  ggml_get_type_traits(type)->to_float(stored.data(), result.data(), n);
  return result;
}

/// One layer's tensors, in the reference's layout.
struct Layer {
  ReferenceShape shape;
  ggml_type type = GGML_TYPE_F32;
  std::vector<float> q, k, v;  // k and v as they can be stored in `type`

  std::vector<float> rounded_q() const { return rounded(q, type); }
};

Layer make_layer(Rng& rng, const ReferenceShape& shape, ggml_type type, const KeyKind& kind) {
  const auto d = static_cast<size_t>(shape.head_dim);
  const auto n_rows = static_cast<size_t>(shape.n_keys() * shape.n_head_kv);
  Layer layer = {.shape = shape, .type = type, .q = {}, .k = {}, .v = {}};
  layer.q = draw_normal(rng, d * static_cast<size_t>(shape.n_head * shape.n_observed));
  layer.k = draw_normal(rng, d * n_rows);
  kind.make(rng, shape.head_dim, layer.k);
  layer.k = rounded(layer.k, type);
  layer.v = rounded(draw_normal(rng, d * n_rows), type);
  return layer;
}

/// The policy's scores of a layer as production computes them: a graph on the CPU, then the host's
/// half. [n_head_kv][n_held].
std::vector<float> production_scores(const kv::Policy& policy, const Layer& layer,
                                     const std::vector<kv::TokenInfo>& info = {}) {
  const ReferenceShape& shape = layer.shape;
  const int n_attended = kv::padded_slots(shape.n_keys());
  const ggml_context_ptr context(
      ggml_init({ggml_tensor_overhead() * 64 + ggml_graph_overhead(), nullptr, /*no_alloc=*/true}));
  ggml_context* ctx = context.get();
  const auto input = [&](ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2) {
    ggml_tensor* tensor = ggml_new_tensor_3d(ctx, type, ne0, ne1, ne2);
    ggml_set_input(tensor);
    return tensor;
  };
  ggml_tensor* k = input(layer.type, shape.head_dim, n_attended, shape.n_head_kv);
  ggml_tensor* v = input(layer.type, shape.head_dim, n_attended, shape.n_head_kv);
  kv::SignalInputs inputs = {.context = ctx, .k = k, .v = v, .n_held = shape.n_held};
  ggml_tensor* q = nullptr;
  if (policy.observes()) {
    // Rows of a projection, as the decoder has them, seen head by head.
    q = input(GGML_TYPE_F32, shape.head_dim, shape.n_head, shape.n_observed);
    inputs.q = ggml_permute(ctx, q, 0, 2, 1, 3);
    inputs.mask = input(GGML_TYPE_F16, n_attended, shape.n_observed, 1);
  }
  ggml_cgraph* graph = ggml_new_graph(ctx);
  const std::vector<ggml_tensor*> signals = policy.build_signals(inputs);
  for (ggml_tensor* signal : signals) {
    ggml_set_output(signal);
    ggml_build_forward_expand(graph, signal);
  }

  const auto set_arena = [&](ggml_tensor* arena, const std::vector<float>& rows) {
    if (arena->buffer == nullptr) return;  // not read by this policy
    // What other blocks left behind the rows in use must not matter.
    const auto d = static_cast<size_t>(shape.head_dim);
    const auto n_keys = static_cast<size_t>(shape.n_keys());
    std::vector<float> all(
        d * static_cast<size_t>(n_attended) * static_cast<size_t>(shape.n_head_kv), 7.0F);
    for (size_t head = 0; head < static_cast<size_t>(shape.n_head_kv); ++head) {
      std::copy_n(
          rows.begin() + static_cast<std::ptrdiff_t>(head * n_keys * d), n_keys * d,
          all.begin() + static_cast<std::ptrdiff_t>(head * static_cast<size_t>(n_attended) * d));
    }
    std::vector<char> stored(ggml_nbytes(arena));
    if (layer.type == GGML_TYPE_F32) {
      std::memcpy(stored.data(), all.data(), stored.size());
    } else {
      ggml_get_type_traits(layer.type)
          ->from_float_ref(all.data(), stored.data(), static_cast<int64_t>(all.size()));
    }
    ggml_backend_tensor_set(arena, stored.data(), 0, stored.size());
  };
  const model::Backends backends(model::Device::cpu(), /*n_threads=*/1);
  const ggml_backend_sched_ptr sched = backends.new_scheduler(64);
  if (!signals.empty()) {
    backends.compute(sched.get(), graph, [&] {
      set_arena(k, layer.k);
      set_arena(v, layer.v);
      if (q == nullptr) return;
      const auto d = static_cast<size_t>(shape.head_dim);
      std::vector<float> by_row(layer.q.size());
      for (size_t head = 0; head < static_cast<size_t>(shape.n_head); ++head) {
        for (size_t row = 0; row < static_cast<size_t>(shape.n_observed); ++row) {
          std::memcpy(&by_row[(row * static_cast<size_t>(shape.n_head) + head) * d],
                      &layer.q[(head * static_cast<size_t>(shape.n_observed) + row) * d],
                      d * sizeof(float));
        }
      }
      ggml_backend_tensor_set(q, by_row.data(), 0, ggml_nbytes(q));
      const int n_before = shape.n_keys() - shape.n_observed;
      std::vector<ggml_fp16_t> mask(static_cast<size_t>(n_attended * shape.n_observed));
      for (int row = 0; row < shape.n_observed; ++row) {
        for (int i = 0; i < n_attended; ++i) {
          mask[static_cast<size_t>(row * n_attended + i)] = ggml_fp32_to_fp16(
              i <= n_before + row ? 0.0F : -std::numeric_limits<float>::infinity());
        }
      }
      ggml_backend_tensor_set(inputs.mask, mask.data(), 0, ggml_nbytes(inputs.mask));
    });
  }
  std::vector<std::vector<float>> values;
  for (ggml_tensor* signal : signals) {
    EXPECT_EQ(signal->type, GGML_TYPE_F32);
    values.emplace_back(static_cast<size_t>(ggml_nelements(signal)));
    ggml_backend_tensor_get(signal, values.back().data(), 0, ggml_nbytes(signal));
  }

  std::vector<int32_t> tokens(static_cast<size_t>(shape.n_held));
  std::iota(tokens.begin(), tokens.end(), 0);
  kv::LayerSlots slots;
  slots.n_head = shape.n_head;
  slots.n_head_kv = shape.n_head_kv;
  slots.n_held = shape.n_held;
  slots.tokens.assign(static_cast<size_t>(shape.n_head_kv), tokens);
  slots.info.assign(static_cast<size_t>(shape.n_head_kv), info);
  return kv::score_layer(policy, values, slots);
}

std::vector<int32_t> best_by_sorting(std::span<const double> scores, int n_keep) {
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(n_keep));
  std::sort(order.begin(), order.end());
  return order;
}

/// Counts over many comparisons.
struct Tally {
  int64_t n_decisions = 0;  // tokens times cuts
  int64_t n_closest = 0;    // decided otherwise, within the tolerance of the cut
  double worst = 0;         // error, in parts of the largest score
};

/// Scores equal within `tolerance` of the largest, kept sets equal but for tokens whose score is
/// within kMargin tolerances of the cut. Close calls are counted unless `many_close_calls`.
void compare(const std::vector<float>& got, const Doubles& want, const ReferenceShape& shape,
             double tolerance, Tally& tally, bool many_close_calls = false) {
  ASSERT_EQ(got.size(), want.size());
  double largest = 1e-30;
  for (const double x : want) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(got[i] - want[i]) / largest;
    tally.worst = std::max(tally.worst, error);
    ASSERT_LE(error, tolerance) << "slot " << i << ": got " << got[i] << ", want " << want[i];
  }
  const auto n = static_cast<size_t>(shape.n_held);
  const std::vector<uint8_t> unprotected(n, 0);
  for (size_t head = 0; head < static_cast<size_t>(shape.n_head_kv); ++head) {
    const auto scores = std::span(want).subspan(head * n, n);
    for (const int n_keep : {1, shape.n_held / 4, shape.n_held / 2, shape.n_held - 1}) {
      const std::vector<int32_t> kept =
          kv::select_kept(std::span(got).subspan(head * n, n), unprotected, n_keep);
      const std::vector<int32_t> best = best_by_sorting(scores, n_keep);
      double cut = std::numeric_limits<double>::infinity();
      for (const int32_t i : best) cut = std::min(cut, scores[static_cast<size_t>(i)]);
      std::vector<int32_t> different;
      std::set_symmetric_difference(kept.begin(), kept.end(), best.begin(), best.end(),
                                    std::back_inserter(different));
      for (const int32_t i : different) {
        ASSERT_LE(std::abs(scores[static_cast<size_t>(i)] - cut), kMargin * tolerance * largest)
            << "slot " << i << " of head " << head << ", " << n_keep << " kept";
      }
      if (many_close_calls) continue;
      tally.n_decisions += shape.n_held;
      tally.n_closest += static_cast<int64_t>(different.size());
    }
  }
}

const ReferenceShape kShapes[] = {
    {.n_head = 6, .n_head_kv = 2, .head_dim = 32, .n_held = 61, .n_observed = 5},
    {.n_head = 4, .n_head_kv = 4, .head_dim = 64, .n_held = 200, .n_observed = 17},
    {.n_head = 7, .n_head_kv = 1, .head_dim = 32, .n_held = 40, .n_observed = 1},
    {.n_head = 4,
     .n_head_kv = 2,
     .head_dim = 32,
     .n_held = 90,
     .n_observed = 8,
     .observers_are_proxies = false},
};

class PolicyReference : public testing::TestWithParam<ggml_type> {
 protected:
  /// Every kind of keys in every shape, several times.
  template <typename Check>
  void for_every_layer(Check check) {
    Rng rng(GetParam() + 11);
    for (const KeyKind& kind : key_kinds()) {
      for (const ReferenceShape& shape : kShapes) {
        SCOPED_TRACE(testing::Message() << kind.name << " " << shape.n_head << ":"
                                        << shape.n_head_kv << " n_held " << shape.n_held);
        check(make_layer(rng, shape, GetParam(), kind), kind);
        if (HasFatalFailure()) return;
      }
    }
  }
  void expect_few_close_calls(const Tally& tally) {
    EXPECT_GT(tally.n_decisions, 1000);
    EXPECT_LE(static_cast<double>(tally.n_closest),
              kMaxShareOfClosest * static_cast<double>(tally.n_decisions));
    RecordProperty("worst_error", std::to_string(tally.worst));
    RecordProperty("close_calls", static_cast<int>(tally.n_closest));
  }
};

INSTANTIATE_TEST_SUITE_P(Types, PolicyReference, testing::ValuesIn(kTypes),
                         [](const auto& type) { return ggml_type_name(type.param); });

TEST_P(PolicyReference, SnapKv) {
  Tally tally;
  for_every_layer([&](const Layer& layer, const KeyKind& kind) {
    for (const GroupReduction group : {GroupReduction::kMean, GroupReduction::kMax}) {
      for (const auto& [pool, reference_pool, kernel] :
           {std::tuple(Pool::kNone, ReferencePool::kNone, 5),
            std::tuple(Pool::kAverage, ReferencePool::kAverage, 5),
            std::tuple(Pool::kMax, ReferencePool::kMax, 7),
            std::tuple(Pool::kAverage, ReferencePool::kAverage, 1)}) {
        SCOPED_TRACE(testing::Message() << "pool " << static_cast<int>(pool) << " kernel " << kernel
                                        << " group " << static_cast<int>(group));
        const auto policy =
            kv::make_policy("snapkv", {.pool = pool, .pool_kernel = kernel, .group = group});
        compare(production_scores(*policy, layer),
                reference_snapkv(layer.shape, layer.rounded_q(), layer.k,
                                 group == GroupReduction::kMax, reference_pool, kernel),
                layer.shape, kind.is_huge ? kHugeTolerance : kTolerance, tally, kind.is_huge);
      }
    }
  });
  expect_few_close_calls(tally);
}

// Without the rounding of queries that ggml's product does.
TEST_P(PolicyReference, SnapKvOfExactQueries) {
  Tally tally;
  const auto policy = kv::make_policy("snapkv", {});
  const auto type = std::find(std::begin(kTypes), std::end(kTypes), GetParam()) - kTypes;
  for_every_layer([&](const Layer& layer, const KeyKind& kind) {
    if (kind.is_huge) return;  // there the rounding of a query decides between keys
    compare(production_scores(*policy, layer),
            reference_snapkv(layer.shape, layer.q, layer.k, /*group_maximum=*/false,
                             ReferencePool::kAverage, 5),
            layer.shape, kRoundedQueryTolerance[type], tally);
  });
  EXPECT_LE(static_cast<double>(tally.n_closest), 0.05 * static_cast<double>(tally.n_decisions));
}

TEST_P(PolicyReference, TheOtherAttentionFormsScoreAsSnapKv) {
  Rng rng(3);
  const Layer layer = make_layer(rng, kShapes[0], GetParam(), key_kinds()[0]);
  const auto want = production_scores(*kv::make_policy("snapkv", {}), layer);
  for (const char* name : {"post-prefill-snapkv", "block-attention"}) {
    EXPECT_EQ(production_scores(*kv::make_policy(name, {}), layer), want) << name;
  }
}

TEST_P(PolicyReference, KeyDiff) {
  Tally tally;
  const auto policy = kv::make_policy("keydiff", {});
  for_every_layer([&](const Layer& layer, const KeyKind&) {
    compare(production_scores(*policy, layer), reference_keydiff(layer.shape, layer.k), layer.shape,
            kTolerance, tally);
  });
  expect_few_close_calls(tally);
}

// The anchor is a short form: it ranks as the sums of all pairwise cosines do.
TEST_P(PolicyReference, KeyDiffRanksAsPairwiseSums) {
  Tally tally;
  const auto policy = kv::make_policy("keydiff", {});
  for_every_layer([&](const Layer& layer, const KeyKind&) {
    const Doubles pairwise = reference_pairwise(layer.shape, layer.k);
    const std::vector<float> scores = production_scores(*policy, layer);
    const auto n = static_cast<size_t>(layer.shape.n_held);
    for (size_t head = 0; head < static_cast<size_t>(layer.shape.n_head_kv); ++head) {
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < i; ++j) {
          const double by_pairs = pairwise[head * n + i] - pairwise[head * n + j];
          const double by_anchor = double{scores[head * n + i]} - scores[head * n + j];
          ++tally.n_decisions;
          if (by_pairs * by_anchor > 0 || (by_pairs == 0 && by_anchor == 0)) continue;
          // A sum of n cosines: its own tolerance is n times that of one.
          ++tally.n_closest;
          ASSERT_LE(std::abs(by_pairs), kTolerance * static_cast<double>(n)) << i << " and " << j;
        }
      }
    }
  });
  expect_few_close_calls(tally);
}

TEST_P(PolicyReference, ValueNorm) {
  Tally tally;
  const auto policy = kv::make_policy("value-norm", {});
  for_every_layer([&](const Layer& layer, const KeyKind&) {
    compare(production_scores(*policy, layer), reference_value_norm(layer.shape, layer.v),
            layer.shape, kTolerance, tally);
  });
  expect_few_close_calls(tally);
}

TEST_P(PolicyReference, Mix) {
  Tally tally;
  const auto policy = kv::make_policy("mix", {});
  for_every_layer([&](const Layer& layer, const KeyKind& kind) {
    compare(
        production_scores(*policy, layer),
        reference_mix(layer.shape, layer.rounded_q(), layer.k, layer.v, ReferencePool::kAverage, 5),
        layer.shape, kMixTolerance, tally, kind.is_huge || kind.is_equal);
  });
  expect_few_close_calls(tally);
}

// One key alone, and keys that cancel out: nothing to rank by, but numbers all the same.
TEST_P(PolicyReference, DegenerateLayersHaveFiniteScores) {
  Rng rng(5);
  for (const int n_held : {1, 2, 8}) {
    Layer layer = make_layer(
        rng, {.n_head = 2, .n_head_kv = 1, .head_dim = 32, .n_held = n_held, .n_observed = 1},
        GetParam(), key_kinds()[0]);
    for (int variant = 0; variant < 2; ++variant) {
      for (size_t i = 0; i < layer.k.size(); ++i) {
        layer.k[i] = variant == 0 ? 0.0F : layer.k[i % 32] * ((i / 32) % 2 == 0 ? 1.0F : -1.0F);
        layer.v[i] = 0.0F;
      }
      for (const kv::PolicyEntry& entry : kv::policies()) {
        for (const float score : production_scores(*entry.make({}), layer)) {
          EXPECT_TRUE(std::isfinite(score)) << entry.name << " " << n_held;
        }
      }
    }
  }
}

TEST(NotANumber, InKeysOrValuesIsRefused) {
  Rng rng(1);
  const Layer clean = make_layer(rng, kShapes[0], GGML_TYPE_F32, key_kinds()[0]);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Layer bad_key = clean, bad_value = clean;
  bad_key.k[10 * 32 + 3] = nan;
  bad_value.v[10 * 32 + 3] = nan;
  const auto select = [](const kv::Policy& policy, const Layer& layer) {
    const std::vector<float> scores = production_scores(policy, layer);
    const std::vector<uint8_t> unprotected(61, 0);
    return kv::select_kept(std::span(scores).first(61), unprotected, 20);
  };
  const auto expect_refused = [&](const char* name, const Layer& layer) {
    const auto policy = kv::make_policy(name, {});
    EXPECT_EQ(select(*policy, clean).size(), 20U);
    try {
      select(*policy, layer);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInternal);
      EXPECT_THAT(error.what(), testing::HasSubstr("NaN"));
    }
  };
  for (const char* name : {"snapkv", "block-attention", "post-prefill-snapkv", "keydiff", "mix"}) {
    expect_refused(name, bad_key);
  }
  for (const char* name : {"value-norm", "mix"}) expect_refused(name, bad_value);
}

}  // namespace
}  // namespace plateau::test

#include "kv/compact.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <tuple>
#include <vector>

#include "kv/draw.h"
#include "plateau/error.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::kv {
namespace {

using test::draw;

constexpr int kHeadDim = 32, kSlots = 48, kHeads = 3;

using Bytes = std::vector<uint8_t>;

/// One arena of a layer on the CPU, filled with bytes that differ everywhere. Compaction moves rows
/// as they are, so they need not be numbers.
class Arena {
 public:
  Arena(ggml_type type, uint64_t seed)
      : context_(ggml_init({ggml_tensor_overhead() * 2, nullptr, /*no_alloc=*/true})),
        tensor_(ggml_new_tensor_3d(context_.get(), type, kHeadDim, kSlots, kHeads)),
        buffer_(ggml_backend_alloc_ctx_tensors_from_buft(context_.get(),
                                                         ggml_backend_cpu_buffer_type())) {
    test::Rng rng(seed);
    Bytes content(ggml_nbytes(tensor_));
    for (uint8_t& byte : content) byte = static_cast<uint8_t>(rng());
    ggml_backend_tensor_set(tensor_, content.data(), 0, content.size());
  }
  ggml_tensor* tensor() const { return tensor_; }
  Bytes content() const {
    Bytes content(ggml_nbytes(tensor_));
    ggml_backend_tensor_get(tensor_, content.data(), 0, content.size());
    return content;
  }
  Bytes row(int head, int slot) const {
    Bytes row(tensor_->nb[1]);
    ggml_backend_tensor_get(
        tensor_, row.data(),
        static_cast<size_t>(head) * tensor_->nb[2] + static_cast<size_t>(slot) * tensor_->nb[1],
        row.size());
    return row;
  }

 private:
  ggml_context_ptr context_;
  ggml_tensor* tensor_;
  ggml_backend_buffer_ptr buffer_;
};

KeptSlots random_slots(test::Rng& rng, int n_held, int n_keep) {
  KeptSlots kept(kHeads);
  for (auto& slots : kept) {
    for (int32_t slot = 0; slot < n_held; ++slot) {
      const int n_wanted = n_keep - static_cast<int>(slots.size());
      if (n_wanted > 0 && draw(rng, 1, n_held - slot) <= n_wanted) slots.push_back(slot);
    }
  }
  return kept;
}

using Compact = void (*)(ggml_tensor*, const KeptSlots&);

class CompactRows : public testing::TestWithParam<std::tuple<ggml_type, Compact>> {};

INSTANTIATE_TEST_SUITE_P(Types, CompactRows,
                         testing::Combine(testing::Values(GGML_TYPE_F16, GGML_TYPE_F32,
                                                          GGML_TYPE_Q8_0),
                                          testing::Values(compact_in_place, compact_staged)),
                         [](const auto& param) {
                           return std::string(ggml_type_name(std::get<0>(param.param))) +
                                  (std::get<1>(param.param) == compact_in_place ? "_in_place"
                                                                                : "_staged");
                         });

TEST_P(CompactRows, EqualsAPlainCopy) {
  const auto [type, compact] = GetParam();
  test::Rng rng(1);
  for (int round = 0; round < 200; ++round) {
    const int n_held = draw(rng, 0, kSlots), n_keep = draw(rng, 0, n_held);
    const Arena before(type, static_cast<uint64_t>(round)),
        after(type, static_cast<uint64_t>(round));
    const KeptSlots kept = random_slots(rng, n_held, n_keep);
    compact(after.tensor(), kept);
    for (int head = 0; head < kHeads; ++head) {
      const std::vector<int32_t>& slots = kept[static_cast<size_t>(head)];
      for (int i = 0; i < n_keep; ++i) {
        ASSERT_EQ(after.row(head, i), before.row(head, slots[static_cast<size_t>(i)]));
      }
      for (int i = n_keep; i < kSlots; ++i) ASSERT_EQ(after.row(head, i), before.row(head, i));
    }
  }
}

TEST_P(CompactRows, WhatStaysWhereItIsCostsNothing) {
  const auto [type, compact] = GetParam();
  const Arena before(type, 1), after(type, 1);
  std::vector<int32_t> all(kSlots);
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int32_t> front(all.begin(), all.begin() + 7);
  compact(after.tensor(), {all, front, {}});
  EXPECT_EQ(after.content(), before.content());
}

TEST_P(CompactRows, TheLastRowCanMoveToTheFirst) {
  const auto [type, compact] = GetParam();
  const Arena before(type, 2), after(type, 2);
  compact(after.tensor(), {{kSlots - 1}, {kSlots - 2}, {0}});
  EXPECT_EQ(after.row(0, 0), before.row(0, kSlots - 1));
  EXPECT_EQ(after.row(1, 0), before.row(1, kSlots - 2));
  EXPECT_EQ(after.row(2, 0), before.row(2, 0));
  EXPECT_EQ(after.row(0, 1), before.row(0, 1));
}

TEST(CompactLayer, MovesKeysAndValuesOfThatLayerOnly) {
  const test::TempDir dir;
  test::write_tiny_text({.n_layer = 2, .n_head = 4, .n_head_kv = 2, .head_dim = 32},
                        dir.file("text.gguf"));
  const model::LanguageModel model = model::LanguageModel::load(dir.file("text.gguf"), {});
  KvCache cache(model, 256, CacheType::kF16, CacheType::kQ8_0);
  const auto fill = [&](ggml_tensor* arena, uint8_t first) {
    Bytes content(ggml_nbytes(arena));
    for (size_t i = 0; i < content.size(); ++i) {
      content[i] = static_cast<uint8_t>(first + i / arena->nb[1]);  // a number per row
    }
    ggml_backend_tensor_set(arena, content.data(), 0, content.size());
  };
  const auto first_bytes = [](const ggml_tensor* arena, size_t head) {
    Bytes bytes;
    for (size_t slot = 0; slot < 4; ++slot) {
      uint8_t byte = 0;
      ggml_backend_tensor_get(arena, &byte, head * arena->nb[2] + slot * arena->nb[1], 1);
      bytes.push_back(byte);
    }
    return bytes;
  };
  for (int il = 0; il < 2; ++il) {
    fill(cache.k(il), 0);
    fill(cache.v(il), 100);
  }
  compact_layer(cache, 1, {{1, 3}, {0, 2}});
  EXPECT_EQ(first_bytes(cache.k(0), 0), (Bytes{0, 1, 2, 3}));
  EXPECT_EQ(first_bytes(cache.v(0), 1), (Bytes{100, 101, 102, 103}));
  EXPECT_EQ(first_bytes(cache.k(1), 0), (Bytes{1, 3, 2, 3}));
  EXPECT_EQ(first_bytes(cache.v(1), 0), (Bytes{101, 103, 102, 103}));
  // 256 slots per head: the second head's numbers start anew.
  EXPECT_EQ(first_bytes(cache.k(1), 1), (Bytes{0, 2, 2, 3}));
  EXPECT_EQ(first_bytes(cache.v(1), 1), (Bytes{100, 102, 102, 103}));
  EXPECT_THROW(compact_layer(cache, 0, {{0}}), Error);  // a head is missing
}

}  // namespace
}  // namespace plateau::kv

#include "kv/kv_cache.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "plateau/error.h"
#include "support/synth.h"
#include "support/temp_dir.h"

#ifdef __SANITIZE_ADDRESS__
// Otherwise the sanitizer ends the process where an allocation fails, which one test provokes.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
#endif

namespace plateau::kv {
namespace {

model::LanguageModel load(const test::TinyTextModel& tiny) {
  const test::TempDir dir;
  test::write_tiny_text(tiny, dir.file("text.gguf"));
  return model::LanguageModel::load(dir.file("text.gguf"), {});
}

TEST(PaddedSlots, RoundsUpToWhatFlashAttentionWants) {
  EXPECT_EQ(padded_slots(0), 0);
  EXPECT_EQ(padded_slots(1), 256);
  EXPECT_EQ(padded_slots(256), 256);
  EXPECT_EQ(padded_slots(257), 512);
}

TEST(KvCache, HasOneArenaForEachLayer) {
  const model::LanguageModel model =
      load({.n_layer = 3, .n_head = 4, .n_head_kv = 2, .head_dim = 32});
  const KvCache cache(model, 300, CacheType::kF16, CacheType::kQ8_0);
  EXPECT_EQ(cache.n_layer(), 3);
  EXPECT_EQ(cache.n_slot(), 512);
  for (int il = 0; il < 3; ++il) {
    for (const ggml_tensor* tensor : {cache.k(il), cache.v(il)}) {
      EXPECT_EQ(tensor->ne[0], 32);
      EXPECT_EQ(tensor->ne[1], 512);
      EXPECT_EQ(tensor->ne[2], 2);
      EXPECT_EQ(tensor->ne[3], 1);
      EXPECT_TRUE(ggml_is_contiguous(tensor));
    }
    EXPECT_EQ(cache.k(il)->type, GGML_TYPE_F16);
    EXPECT_EQ(cache.v(il)->type, GGML_TYPE_Q8_0);
    EXPECT_EQ(cache.k(il)->name, "cache_k_l" + std::to_string(il));
    EXPECT_EQ(cache.v(il)->name, "cache_v_l" + std::to_string(il));
  }
}

// The figure that is promised before loading is the one that is allocated, to the byte.
TEST(KvCache, TakesTheBytesThatTheConfigPromises) {
  const model::LanguageModel model = load({.n_head = 4, .n_head_kv = 2, .head_dim = 32});
  for (const CacheType k : {CacheType::kF16, CacheType::kQ8_0, CacheType::kF32}) {
    for (const CacheType v : {CacheType::kF16, CacheType::kQ8_0, CacheType::kF32}) {
      const KvCache cache(model, 256, k, v);
      EXPECT_EQ(cache.n_bytes(), 256 * model.config().kv_bytes_per_token(to_ggml(k), to_ggml(v)));
    }
  }
}

// Masked slots are read, and garbage that happens to be NaN would poison the sum.
TEST(KvCache, StartsAsZeros) {
  const model::LanguageModel model = load({});
  const KvCache cache(model, 1, CacheType::kF32, CacheType::kF16);
  for (const ggml_tensor* tensor : {cache.k(0), cache.v(0), cache.k(1), cache.v(1)}) {
    std::vector<uint8_t> bytes(ggml_nbytes(tensor), 1);
    ggml_backend_tensor_get(tensor, bytes.data(), 0, bytes.size());
    EXPECT_EQ(bytes, std::vector<uint8_t>(bytes.size(), 0));
  }
}

TEST(KvCache, AHeadSizeThatTheTypeCannotHoldIsRefused) {
  const model::LanguageModel model = load({.head_dim = 16});
  try {
    const KvCache cache(model, 256, CacheType::kF16, CacheType::kQ8_0);
    FAIL() << "allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    const std::string text = error.what();
    for (const char* part : {"32", "q8_0", "16"}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
}

TEST(KvCache, WhatTheMachineCannotHoldIsAnError) {
  const model::LanguageModel model = load({.n_layer = 64, .head_dim = 512, .n_ff = 32});
  try {
    const KvCache cache(model, 2'000'000'000, CacheType::kF32, CacheType::kF32);
    FAIL() << "allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted) << error.what();
  }
}

TEST(KvCache, ClearingItCanBeCancelled) {
  const model::LanguageModel model = load({});
  int n_polls = 0;
  try {
    const KvCache cache(model, 300, CacheType::kF16, CacheType::kF16, model::WeightUse::kCompute,
                        [&] { return ++n_polls > 0; });
    FAIL() << "allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled) << error.what();
  }
  EXPECT_EQ(n_polls, 1);
}

TEST(KvCache, NoSlotsAreABug) {
  const model::LanguageModel model = load({});
  EXPECT_THROW(KvCache(model, 0, CacheType::kF16, CacheType::kF16), Error);
}

}  // namespace
}  // namespace plateau::kv

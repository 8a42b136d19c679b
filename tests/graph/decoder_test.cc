// Parity with the pinned llama.cpp on the same file in the same process, in rising order: tokens,
// named tensors, logits, greedy answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "decoder_harness.h"
#include "support/compare.h"
#include "support/llama_oracle.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::synth {

static void PrintTo(const TinyTextModel& model, std::ostream* out) {
  *out << model.arch << " " << model.n_head << ":" << model.n_head_kv << " heads of "
       << model.head_dim << (model.tied ? " tied " : " ") << ggml_type_name(model.type);
}

}  // namespace plateau::synth

namespace plateau::test {

namespace {

// At the same block size both sides run the same kernels on the same numbers in the same order.
// Measured: equal to the bit, but for the two cases below.
constexpr double kSameBlockNmse = 1e-6;
// Between block sizes the order of sums differs: ggml's flash attention on the CPU sums V in f16
// below a tile of 64 queries, in f32 from there on, and keys and values are rounded when stored.
// llama.cpp differs from itself by the same, to the bit. Measured: up to 1.6e-5 ...
constexpr double kAcrossBlocksNmse = 5e-5;
// ... and 2.3e-4 with quantised weights, which also quantise the other operand of each product.
constexpr double kAcrossBlocksNmseQuantised = 1e-3;

// llama.cpp does not read the epsilon of qwen2vl's norms (below): one that changes no float.
constexpr float kNoEps = 1e-30F;

constexpr int kGreedySteps = 64;

constexpr const char* kPrompt =
    "<|im_start|>user\nWhat number is on the cat? Some plain words, byte by byte, make it longer "
    "than a tile, too, and then longer than the 256 slots that are attended to at once, because "
    "a cache that has grown past its first padding is where an offset that is wrong would show. "
    "So this goes on for a while, until it is long enough to do that, with a few more words at its "
    "end for good measure.<|im_end|>\n<|im_start|>assistant\n";

// A tied, quantised embedding: llama.cpp keeps a second copy as output matrix, which it may lay out
// for faster products; ours multiplies with the plain one. Measured: 5e-15 (q4_0).
bool output_is_exact(const TinyTextModel& model) {
  return !model.tied || !ggml_is_quantized(model.type);
}

testing::AssertionResult equal_logits(std::span<const float> got, std::span<const float> want,
                                      bool exact) {
  return exact ? bit_equal(got, want) : nmse_at_most(got, want, kSameBlockNmse);
}

ggml_type to_ggml(CacheType type) { return kv::to_ggml(type); }

class DecoderParity : public testing::TestWithParam<TinyTextModel> {
 protected:
  DecoderParity() { write_tiny_text(GetParam(), path_); }

  TempDir dir_;
  std::string path_ = dir_.file("text.gguf");
};

TEST_P(DecoderParity, TokenIdsAreEqual) {
  const LlamaOracle oracle(path_);
  const Decoder decoder(path_);
  for (const std::string& text :
       {std::string(kPrompt), std::string(""), std::string(" "), std::string("\n\n  \t"),
        std::string("What's 1234567 + 89?"), std::string("<img></img><IMG_CONTEXT>"),
        std::string("<|im_start"), std::string("caf\xC3\xA9 \xE7\x8C\xAB \xF0\x9F\x98\x80"),
        std::string("a\0b", 3), std::string(3000, 'x')}) {
    for (const bool special : {true, false}) {
      EXPECT_EQ(decoder.model().vocab().tokenize(text, special),
                oracle.tokenize(text, /*add_special=*/false, special))
          << text;
    }
  }
}

TEST_P(DecoderParity, EveryNamedTensorIsEqualLayerByLayer) {
  LlamaOracle oracle(path_);
  Decoder decoder(path_);
  const std::vector<int32_t> tokens = oracle.tokenize(kPrompt, false, true);
  // The second block attends to the first one, too.
  const auto first = std::span(tokens).first(40), second = std::span(tokens).subspan(40, 30);
  std::set<std::string> names = {"result_norm", "result_output"};
  for (int il = 0; il < GetParam().n_layer; ++il) {
    for (const char* name : {"attn_norm", "Qcur", "Kcur", "Vcur", "kqv_out", "ffn_inp", "ffn_norm",
                             "ffn_out", "l_out"}) {
      names.insert(std::string(name) + "-" + std::to_string(il));
    }
  }
  for (const auto block : {first, second}) {
    oracle.tap().want(names);
    decoder.tap().want(names);
    decoder.tap().clear();
    oracle.decode(block);
    decoder.decode(block);
    for (const std::string& name : names) {
      const TappedTensor& got = decoder.tap().find(name);
      const TappedTensor& want = oracle.tap().find(name);
      EXPECT_EQ(got.ne, want.ne) << name;
      EXPECT_TRUE(equal_logits(got.values, want.values,
                               name != "result_output" || output_is_exact(GetParam())))
          << name;
    }
  }
}

TEST_P(DecoderParity, LogitsAreEqualAtEveryBlockSize) {
  LlamaOracle oracle(path_);
  const std::vector<int32_t> tokens = oracle.tokenize(kPrompt, false, true);
  ASSERT_GT(tokens.size(), 300U);  // beyond the first padding of the cache
  std::vector<float> in_one_block;
  for (const int n_block : {0, 1, 7, 64, 256}) {
    SCOPED_TRACE(n_block);
    oracle.clear();
    Decoder decoder(path_);
    const std::vector<float> got = decoder.decode(tokens, n_block);
    EXPECT_TRUE(equal_logits(got, oracle.decode(tokens, n_block), output_is_exact(GetParam())));
    if (n_block == 0) in_one_block = got;
    EXPECT_TRUE(nmse_at_most(
        got, in_one_block,
        ggml_is_quantized(GetParam().type) ? kAcrossBlocksNmseQuantised : kAcrossBlocksNmse));
    EXPECT_EQ(decoder.n_past(), static_cast<int>(tokens.size()));
  }
}

TEST_P(DecoderParity, GreedyAnswersAreEqual) {
  LlamaOracle oracle(path_);
  Decoder decoder(path_);
  const std::vector<int32_t> tokens = oracle.tokenize(kPrompt, false, true);
  oracle.decode(tokens, 64);
  const std::vector<int32_t> answer = oracle.greedy(kGreedySteps);
  EXPECT_EQ(decoder.greedy(decoder.decode(tokens, 64), kGreedySteps), answer);
  if (!GetParam().tied) {  // a tied output tends to repeat its input
    EXPECT_GT(std::set<int32_t>(answer.begin(), answer.end()).size(), 1U);
  }
}

TEST_P(DecoderParity, TokenEmbeddingsAreEqual) {
  LlamaOracle oracle(path_);
  Decoder decoder(path_);
  const std::vector<int32_t> tokens = oracle.tokenize(kPrompt, false, true);
  oracle.tap().want({"embd"});
  oracle.decode(tokens);
  EXPECT_TRUE(bit_equal(decoder.runner().embed(tokens), oracle.tap().find("embd").values));
  EXPECT_TRUE(decoder.runner().embed({}).empty());
}

std::vector<float> random_rows(int n, int n_embd) {
  std::vector<float> rows(static_cast<size_t>(n) * static_cast<size_t>(n_embd));
  WeightStream("rows", 1).fill(rows, /*mean=*/0.0F, /*deviation=*/1.0F);
  return rows;
}

// Rows that are no token's, as pictures come.
TEST_P(DecoderParity, LogitsOfEmbeddingsAreEqual) {
  LlamaOracle oracle(path_);
  Decoder decoder(path_);
  const std::vector<float> rows = random_rows(100, GetParam().n_embd);
  const bool exact = output_is_exact(GetParam());
  EXPECT_TRUE(equal_logits(decoder.decode_embeddings(rows, {}, 7),
                           oracle.decode_embeddings(rows, 7), exact));
  const std::vector<int32_t> tokens = oracle.tokenize("What is it?", false, true);
  EXPECT_TRUE(equal_logits(decoder.decode(tokens), oracle.decode(tokens), exact));
}

TEST_P(DecoderParity, ABlockWithoutLogitsLeavesTheSameCache) {
  Decoder with(path_), without(path_);
  const std::vector<int32_t> tokens = with.model().vocab().tokenize(kPrompt, true);
  const std::vector<float> rows = with.runner().embed(tokens);
  EXPECT_FALSE(with.decode_embeddings(rows, {}, 64).empty());
  EXPECT_TRUE(without.decode_embeddings(rows, {}, 64, /*want_logits=*/false).empty());
  EXPECT_EQ(with.cache_content(), without.cache_content());
  const auto next = std::span(tokens).first(1);
  EXPECT_TRUE(bit_equal(with.decode(next), without.decode(next)));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, DecoderParity,
    testing::Values(
        TinyTextModel{.arch = "qwen2", .n_layer = 3}, TinyTextModel{.arch = "qwen3", .n_layer = 3},
        TinyTextModel{.arch = "qwen2", .n_head_kv = 4, .tied = true},  // 1:1
        TinyTextModel{.arch = "qwen3", .n_head_kv = 4, .tied = true},
        TinyTextModel{.arch = "qwen3", .n_head = 8, .n_head_kv = 2, .head_dim = 32},  // 4:1
        TinyTextModel{.arch = "qwen2",                                                // 7:1
                      .n_embd = 224,
                      .n_head = 14,
                      .n_head_kv = 2,
                      .tied = true},
        TinyTextModel{.arch = "qwen3", .n_head = 7, .n_head_kv = 1, .head_dim = 64},
        TinyTextModel{.arch = "qwen3", .n_head = 2, .n_head_kv = 1, .head_dim = 128, .qk_gain = 2},
        TinyTextModel{.arch = "llama", .n_layer = 3},
        TinyTextModel{.arch = "llama", .n_head = 9, .n_head_kv = 3, .head_dim = 32, .tied = true},
        TinyTextModel{.arch = "llama", .n_head_kv = 4, .type = GGML_TYPE_Q8_0},
        TinyTextModel{.arch = "qwen2vl", .n_layer = 3, .rms_eps = kNoEps},
        TinyTextModel{
            .arch = "qwen2vl", .n_embd = 256, .head_dim = 64, .rms_eps = kNoEps, .tied = true},
        TinyTextModel{.arch = "qwen2vl", .n_head_kv = 4, .rms_eps = kNoEps, .type = GGML_TYPE_Q8_0},
        TinyTextModel{.arch = "qwen2", .type = GGML_TYPE_F16},
        TinyTextModel{.arch = "qwen3", .tied = true, .type = GGML_TYPE_F16},
        TinyTextModel{.arch = "qwen2", .tied = true, .type = GGML_TYPE_Q8_0},
        TinyTextModel{.arch = "qwen3", .type = GGML_TYPE_Q8_0},
        TinyTextModel{.arch = "qwen3", .tied = true, .type = GGML_TYPE_Q4_0}),
    [](const auto& param) {
      return param.param.arch + "_" + std::to_string(param.param.n_head) + "_" +
             std::to_string(param.param.n_head_kv) + "_" + std::to_string(param.param.head_dim) +
             "_" + ggml_type_name(param.param.type) + (param.param.tied ? "_tied" : "");
    });

// llama.cpp takes no gaps between positions, but it can forget tokens afterwards. With one layer,
// keys and values do not depend on the tokens before, so that both must agree.
TEST(DecoderPositions, AGapEqualsTokensThatWereForgotten) {
  for (const char* arch : {"llama", "qwen2", "qwen2vl", "qwen3"}) {
    const TempDir dir;
    const std::string path = dir.file("text.gguf");
    const TinyTextModel model = {.arch = arch, .n_layer = 1, .rms_eps = kNoEps, .qk_gain = 2};
    write_tiny_text(model, path);
    LlamaOracle oracle(path);
    const std::vector<float> rows = random_rows(100, model.n_embd);
    const std::vector<int32_t> tokens = oracle.tokenize("What is it?", false, true);
    oracle.decode_embeddings(rows);
    oracle.remove(20, 50);
    const std::vector<float> want = oracle.decode(tokens);

    std::vector<float> kept(rows.begin(), rows.begin() + 20 * model.n_embd);
    kept.insert(kept.end(), rows.begin() + 50 * model.n_embd, rows.end());
    std::vector<kv::Position> positions;
    for (int32_t i = 0; i < 100; ++i) {
      if (i < 20 || i >= 50) positions.push_back(kv::Position::sequential(i));
    }
    Decoder with_gap(path), without_gap(path);
    with_gap.decode_embeddings(kept, positions);
    without_gap.decode_embeddings(kept);
    EXPECT_TRUE(nmse_at_most(with_gap.decode(tokens), want, kSameBlockNmse));
    EXPECT_GT(nmse(without_gap.decode(tokens), want), 10 * kSameBlockNmse);
  }
}

// Text at positions whose components are equal turns as in Qwen2, whose tensors these are. With an
// epsilon that is large enough to see: llama.cpp's qwen2vl leaves it at 0, ours reads the file.
TEST(Qwen2VLText, IsQwen2sText) {
  constexpr float kEps = 0.1F;
  const TempDir dir;
  write_tiny_text({.arch = "qwen2", .n_layer = 3, .rms_eps = kEps}, dir.file("qwen2.gguf"));
  write_tiny_text({.arch = "qwen2vl", .n_layer = 3, .rms_eps = kEps}, dir.file("qwen2vl.gguf"));
  Decoder qwen2(dir.file("qwen2.gguf")), qwen2vl(dir.file("qwen2vl.gguf"));
  const std::vector<int32_t> tokens = qwen2.model().vocab().tokenize(kPrompt, true);
  const std::vector<float> got = qwen2vl.decode(tokens, 64);
  EXPECT_TRUE(nmse_at_most(got, qwen2.decode(tokens, 64), 1e-9));

  LlamaOracle oracle(dir.file("qwen2.gguf")), without_eps(dir.file("qwen2vl.gguf"));
  EXPECT_TRUE(nmse_at_most(got, oracle.decode(tokens, 64), 1e-9));
  // When this fails, llama.cpp reads it: then kNoEps can go.
  EXPECT_GT(nmse(without_eps.decode(tokens, 64), got), 1e-4);
}

struct CacheTypes {
  CacheType k = CacheType::kF16;
  CacheType v = CacheType::kF16;
};

// llama.cpp's flash attention rounds what it reads from an f32 cache to f16, ours does not: f32 is
// compared with its plain attention. llama.cpp rotates keys and values that it quantises when 64
// divides head_dim; the sums of the rotated ones differ, so that q8_0 is compared at 32 and 96.
class CacheParity : public testing::TestWithParam<std::tuple<CacheTypes, int>> {};

TEST_P(CacheParity, LogitsAndAnswersAreEqual) {
  const auto& [types, head_dim] = GetParam();
  for (const char* arch : {"llama", "qwen2", "qwen2vl", "qwen3"}) {
    const TempDir dir;
    const std::string path = dir.file("text.gguf");
    write_tiny_text({.arch = arch,
                     .n_embd = 4 * head_dim,
                     .n_head = 4,
                     .n_head_kv = 2,
                     .head_dim = head_dim,
                     .rms_eps = kNoEps},
                    path);
    const bool f32 = types.k == CacheType::kF32;
    LlamaOracle oracle(
        path, {.type_k = to_ggml(types.k), .type_v = to_ggml(types.v), .flash_attn = !f32});
    const std::vector<int32_t> tokens = oracle.tokenize(kPrompt, false, true);
    for (const int n_block : {0, 1, 7, 64, 256}) {
      SCOPED_TRACE(n_block);
      oracle.clear();
      Decoder decoder(path, {.type_k = types.k, .type_v = types.v});
      const std::vector<float> got = decoder.decode(tokens, n_block);
      EXPECT_TRUE(equal_logits(got, oracle.decode(tokens, n_block), !f32));
      if (n_block == 64) {
        EXPECT_EQ(decoder.greedy(got, 16), oracle.greedy(16));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types, CacheParity,
    testing::Combine(testing::Values(CacheTypes{CacheType::kF32, CacheType::kF32},
                                     CacheTypes{CacheType::kQ8_0, CacheType::kQ8_0},
                                     CacheTypes{CacheType::kF16, CacheType::kQ8_0}),
                     testing::Values(32, 96)));

// Keys of the file that change the rotation are read as llama.cpp reads them.
class RopeParity : public testing::TestWithParam<std::map<std::string, GgufValue>> {};

TEST_P(RopeParity, LogitsAreEqual) {
  const TempDir dir;
  const std::string path = dir.file("text.gguf");
  write_tiny_text({}, path, {.set_keys = GetParam()});
  LlamaOracle oracle(path);
  Decoder decoder(path);
  const std::vector<int32_t> tokens = oracle.tokenize(kPrompt, false, true);
  EXPECT_TRUE(bit_equal(decoder.decode(tokens, 64), oracle.decode(tokens, 64)));
}

INSTANTIATE_TEST_SUITE_P(
    Keys, RopeParity,
    testing::Values(std::map<std::string, GgufValue>{{"qwen3.rope.freq_base", 1e4F}},
                    std::map<std::string, GgufValue>{{"qwen3.rope.scaling.factor", 4.0F}},
                    std::map<std::string, GgufValue>{{"qwen3.rope.scale_linear", 4.0F}},
                    std::map<std::string, GgufValue>{{"qwen3.rope.scaling.type", "linear"},
                                                     {"qwen3.rope.scaling.factor", 4.0F}},
                    std::map<std::string, GgufValue>{{"qwen3.rope.scaling.factor", 2.0F},
                                                     {"qwen3.rope.scale_linear", 4.0F}},
                    std::map<std::string, GgufValue>{{"qwen3.rope.scaling.type", "none"},
                                                     {"qwen3.rope.scaling.factor", 4.0F}},
                    std::map<std::string, GgufValue>{
                        {"qwen3.attention.head_count_kv", std::vector<uint32_t>{2, 2}}}),
    [](const auto& param) { return "Case" + std::to_string(param.index); });

}  // namespace
}  // namespace plateau::test

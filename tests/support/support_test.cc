// The test support tested: whoever compares with it should not have to doubt it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plateau/error.h"
#include "support/compare.h"
#include "support/llama_oracle.h"
#include "support/mtmd_oracle.h"
#include "support/reference_attention.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::synth {

// How GoogleTest names the parameter of a failed case.
static void PrintTo(const TinyTextModel& model, std::ostream* out) {
  *out << model.arch << " n_head_kv " << model.n_head_kv << (model.tied ? " tied" : "");
}

}  // namespace plateau::synth

namespace plateau::test {

namespace {

// llama.cpp against itself at another block size, f32 weights. Without flash attention only the
// order of sums differs, and now and then the rounding of a key or value to f16.
constexpr double kPlainNmse = 1e-8;
// ggml's flash attention on the CPU sums V in f16 for blocks below a tile of 64 queries ...
constexpr double kFlashNmse = 1e-6;
// ... and in f32 from there on: up to 3e-6 apart in these models.
constexpr double kFlashAcrossTileNmse = 1e-5;

constexpr const char* kPrompt =
    "<|im_start|>user\nWhat number is on the cat? Some plain words, byte by byte, make it longer "
    "than a tile, too.<|im_end|>\n<|im_start|>assistant\n";

std::vector<int32_t> ne_of(const TappedTensor& tensor) {
  return {tensor.ne.begin(), tensor.ne.end()};
}

TEST(TempDir, IsRemovedWithItsContent) {
  std::filesystem::path path;
  {
    const TempDir dir;
    path = dir.path();
    write_tiny_text({}, dir.file("text.gguf"));
    EXPECT_TRUE(std::filesystem::exists(path / "text.gguf"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Compare, NamesTheFirstBadIndexAndTheLargestError) {
  const std::vector<float> want = {1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(nmse(std::vector<float>{1, 2, 3, 5}, want), 1.0 / 30);
  EXPECT_TRUE(nmse_at_most(want, want, 0));
  const auto result = nmse_at_most(std::vector<float>{1, 2.5F, 3, 5}, want, 1e-3);
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message(), testing::HasSubstr("first bad index 1"));
  EXPECT_THAT(result.message(), testing::HasSubstr("max error 1 at index 3"));
  EXPECT_FALSE(nmse_at_most(std::vector<float>{1, 2, 3, NAN}, want, 1));
  EXPECT_FALSE(nmse_at_most(std::vector<float>{1, 2, 3}, want, 1));
  EXPECT_FALSE(bit_equal(std::vector<float>{0.0F}, std::vector<float>{-0.0F}));
  EXPECT_EQ(argmax(std::vector<float>{1, 7, 7}), 1U);
}

TEST(ReferenceAttention, HeadsOfAGroupShareKeysAndTheMaskHides) {
  // Two query heads on one kv head, dimension 1; weights are a softmax over {q * k}.
  const AttentionShape shape = {.n_head = 2, .n_head_kv = 1, .n_q = 1, .n_kv = 3, .head_dim = 1};
  const std::vector<float> q = {0, 1}, k = {0, std::log(2.0F), 5}, v = {1, 4, 100};
  const AttentionResult seen_all = reference_attention(shape, q, k, v);
  EXPECT_DOUBLE_EQ(seen_all.out[0], 35.0);
  const std::vector<uint8_t> mask = {1, 1, 0};
  const AttentionResult masked = reference_attention(shape, q, k, v, mask);
  EXPECT_DOUBLE_EQ(masked.out[0], 2.5);
  EXPECT_NEAR(masked.out[1], 3.0, 1e-6);
  EXPECT_EQ(masked.weights[5], 0.0);
  EXPECT_THAT(causal_mask(2, 3), testing::ElementsAre(1, 1, 0, 1, 1, 1));
}

TEST(WeightStream, DependsOnNameAndSeedAndHasTheMomentsAskedFor) {
  const auto draw = [](const char* name, uint64_t seed) {
    std::vector<float> values(1 << 16);
    WeightStream(name, seed).fill(values, /*mean=*/2.0F, /*deviation=*/0.5F);
    return values;
  };
  const std::vector<float> values = draw("a", 1);
  EXPECT_EQ(values, draw("a", 1));
  EXPECT_NE(values, draw("a", 2));
  EXPECT_NE(values, draw("b", 1));
  EXPECT_FLOAT_EQ(values[0], 1.5641065F);  // a platform that differs here has other tiny models
  double mean = 0, square = 0;
  for (const float x : values) mean += x / static_cast<double>(values.size());
  for (const float x : values) square += (x - mean) * (x - mean);
  EXPECT_NEAR(mean, 2.0, 0.01);
  EXPECT_NEAR(std::sqrt(square / static_cast<double>(values.size())), 0.5, 0.01);
}

class TinyText : public testing::TestWithParam<TinyTextModel> {
 protected:
  TinyText() { write_tiny_text(GetParam(), path_); }
  TempDir dir_;
  std::string path_ = dir_.file("text.gguf");
};

TEST_P(TinyText, TokensRoundTrip) {
  const LlamaOracle oracle(path_);
  const std::vector<int32_t> tokens = oracle.tokenize(kPrompt, false, true);
  const TinyVocab vocab = make_tiny_vocab(GetParam().n_vocab);
  EXPECT_EQ(oracle.n_vocab(), static_cast<int>(vocab.tokens.size()));
  EXPECT_EQ(vocab.tokens.at(static_cast<size_t>(tokens.at(0))), "<|im_start|>");
  EXPECT_EQ(vocab.tokens.at(static_cast<size_t>(tokens.at(1))), "user");
  EXPECT_EQ(oracle.detokenize(tokens), kPrompt);
}

TEST_P(TinyText, LogitsDoNotDependOnTheBlockSize) {
  for (const bool flash_attn : {true, false}) {
    LlamaOracle oracle(path_, {.flash_attn = flash_attn});
    const std::vector<int32_t> tokens = oracle.tokenize(kPrompt, false, true);
    ASSERT_GT(tokens.size(), 70U);
    const std::vector<float> one_by_one = oracle.decode(tokens, 1);
    for (const int n_block : {7, 32, 512}) {
      oracle.clear();
      const double flash_bound = n_block < 64 ? kFlashNmse : kFlashAcrossTileNmse;
      EXPECT_TRUE(nmse_at_most(oracle.decode(tokens, n_block), one_by_one,
                               flash_attn ? flash_bound : kPlainNmse))
          << "block of " << n_block << (flash_attn ? ", flash attention" : "");
    }
  }
}

// One context serves blocks of all sizes: n_batch is a limit and does not show in the result.
TEST_P(TinyText, BlocksSmallerThanNBatchEqualAContextOfThatSize) {
  LlamaOracle large(path_), small(path_, {.n_batch = 7});
  const std::vector<int32_t> tokens = large.tokenize(kPrompt, false, true);
  EXPECT_TRUE(bit_equal(large.decode(tokens, 7), small.decode(tokens)));
}

TEST_P(TinyText, LogitsAreSharpEnoughToTellTokensApart) {
  LlamaOracle oracle(path_);
  const std::vector<float> logits = oracle.decode(oracle.tokenize(kPrompt, false, true));
  double power = 0;
  for (const float x : logits) power += double{x} * x / static_cast<double>(logits.size());
  EXPECT_GT(power, 0.2);
  EXPECT_LT(power, 5.0);
  const std::vector<int32_t> tokens = oracle.greedy(16);
  EXPECT_EQ(tokens.size(), 16U);
  EXPECT_GT(std::set<int32_t>(tokens.begin(), tokens.end()).size(), 1U);  // not stuck
}

TEST_P(TinyText, EmbeddingsOfTokensGiveTheTokensLogits) {
  LlamaOracle oracle(path_);
  const std::vector<int32_t> tokens = oracle.tokenize("What is on the moon", false, true);
  oracle.tap().want({"embd"});
  const std::vector<float> logits = oracle.decode(tokens);
  const std::vector<float> rows = oracle.tap().find("embd").values;
  oracle.clear();
  EXPECT_TRUE(bit_equal(oracle.decode_embeddings(rows), logits));
}

TEST_P(TinyText, RemovedPositionsChangeTheLogits) {
  LlamaOracle oracle(path_);
  const std::vector<int32_t> tokens = oracle.tokenize(kPrompt, false, true);
  const std::vector<float> full = oracle.decode(tokens);
  oracle.clear();
  oracle.decode(std::span(tokens).first(tokens.size() - 1));
  oracle.remove(4, 30);
  EXPECT_EQ(oracle.next_pos(), static_cast<int32_t>(tokens.size()) - 1);
  EXPECT_GT(nmse(oracle.decode(std::span(tokens).last(1)), full), 1e-3);
}

TEST_P(TinyText, NamedTensorsArriveInGgmlOrder) {
  const TinyTextModel& m = GetParam();
  LlamaOracle oracle(path_);
  const std::vector<int32_t> tokens = oracle.tokenize("What is on the moon", false, true);
  const int n = static_cast<int>(tokens.size());
  TensorTap& tap = oracle.tap();
  tap.want({"attn_norm-0", "Qcur-0", "Kcur-0", "Vcur-0", "kqv_out-0", "ffn_out-0", "l_out-0",
            "l_out-1", "result_norm", "result_output"});
  const std::vector<float> logits = oracle.decode(tokens);
  const std::map<std::string, std::vector<int32_t>> shapes = {
      {"attn_norm-0", {m.n_embd, n, 1, 1}},
      {"Qcur-0", {m.head_dim, m.n_head, n, 1}},
      {"Kcur-0", {m.head_dim, m.n_head_kv, n, 1}},
      {"Vcur-0", {m.head_dim, m.n_head_kv, n, 1}},
      {"kqv_out-0", {m.n_head * m.head_dim, n, 1, 1}},
      {"ffn_out-0", {m.n_embd, n, 1, 1}},
      {"l_out-0", {m.n_embd, n, 1, 1}},
      {"l_out-1", {m.n_embd, 1, 1, 1}},  // the last layer keeps only the rows with logits
      {"result_norm", {m.n_embd, 1, 1, 1}},
      {"result_output", {oracle.n_vocab(), 1, 1, 1}}};
  for (const auto& [name, shape] : shapes) EXPECT_EQ(ne_of(tap.find(name)), shape) << name;
  EXPECT_TRUE(bit_equal(tap.find("result_output").values, logits));
  oracle.clear();
  tap.want_nothing();
  EXPECT_TRUE(bit_equal(oracle.decode(tokens), logits));  // tapping does not change the result
  EXPECT_THROW(tap.find("l_out-0"), Error);
}

// Q, K and V from the tap through the plain loops give llama.cpp's own attention.
TEST_P(TinyText, ReferenceAttentionExplainsTheOracle) {
  const TinyTextModel& m = GetParam();
  LlamaOracle oracle(path_);
  const std::vector<int32_t> tokens = oracle.tokenize("What is on the moon", false, true);
  const int n = static_cast<int>(tokens.size());
  oracle.tap().want({"Qcur-0", "Kcur-0", "Vcur-0", "kqv_out-0"});
  oracle.decode(tokens);
  const auto by_head = [n, &m](const TappedTensor& tensor) {  // [head_dim, n_head, n] -> by head
    const int n_head = static_cast<int>(tensor.ne[1]);
    std::vector<float> out;
    for (int h = 0; h < n_head; ++h) {
      for (int i = 0; i < n; ++i) {
        const auto row = tensor.values.begin() + (i * n_head + h) * m.head_dim;
        out.insert(out.end(), row, row + m.head_dim);
      }
    }
    return out;
  };
  const AttentionShape shape = {.n_head = m.n_head,
                                .n_head_kv = m.n_head_kv,
                                .n_q = n,
                                .n_kv = n,
                                .head_dim = m.head_dim,
                                .scale = 1.0 / std::sqrt(m.head_dim)};
  const AttentionResult result = reference_attention(
      shape, by_head(oracle.tap().find("Qcur-0")), by_head(oracle.tap().find("Kcur-0")),
      by_head(oracle.tap().find("Vcur-0")), causal_mask(n, n));
  TappedTensor kqv = oracle.tap().find("kqv_out-0");
  kqv.ne = {m.head_dim, m.n_head, n, 1};
  const std::vector<float> want(result.out.begin(), result.out.end());
  EXPECT_TRUE(nmse_at_most(by_head(kqv), want, 1e-6));  // f16 keys and values
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, TinyText,
    testing::Values(TinyTextModel{}, TinyTextModel{.arch = "qwen2"},
                    TinyTextModel{.arch = "qwen3", .n_head_kv = 1, .head_dim = 32, .tied = true},
                    TinyTextModel{.arch = "qwen2", .n_vocab = 512, .tied = true},
                    TinyTextModel{.arch = "llama", .n_head_kv = 4}),
    [](const auto& param) { return param.param.arch + std::to_string(param.index); });

TEST(TinyTextTypes, ReducedTypesStayNearF32) {
  const TempDir dir;
  write_tiny_text({}, dir.file("f32.gguf"));
  write_tiny_text({.type = GGML_TYPE_F16}, dir.file("f16.gguf"));
  write_tiny_text({.type = GGML_TYPE_Q8_0}, dir.file("q8_0.gguf"));
  LlamaOracle f32(dir.file("f32.gguf")), f16(dir.file("f16.gguf")), q8(dir.file("q8_0.gguf"));
  const std::vector<int32_t> tokens = f32.tokenize(kPrompt, false, true);
  const std::vector<float> want = f32.decode(tokens);
  EXPECT_TRUE(nmse_at_most(f16.decode(tokens), want, 1e-4));
  EXPECT_TRUE(nmse_at_most(q8.decode(tokens), want, 1e-1));
}

TEST(TinyTextTypes, SparseFilesHaveTheFullSizeAndLoad) {
  const TempDir dir;
  TinyTextModel model = half_billion_shape();
  model.n_layer = 2;
  write_tiny_text(model, dir.file("a.gguf"), {.data = GgufMutations::Data::kSparse});
  EXPECT_GT(std::filesystem::file_size(dir.file("a.gguf")), 150U << 20);
  EXPECT_EQ(LlamaOracle(dir.file("a.gguf"), {.n_ctx = 256}).n_embd(), 896);
}

class TinyVisionTest : public testing::Test {
 protected:
  TinyVisionTest() { write_tiny_text({}, text_); }
  std::vector<float> encode(const TinyVision& vision, const RgbPicture& picture,
                            const MtmdOracleOptions& options = {}) {
    write_tiny_vision(vision, mmproj_);
    return MtmdOracle(text_, mmproj_, options).encode_tile(picture.pixels, picture.width);
  }
  TempDir dir_;
  std::string text_ = dir_.file("text.gguf"), mmproj_ = dir_.file("mmproj.gguf");
  RgbPicture tile_ = random_picture(112, 112, /*seed=*/1);
};

TEST_F(TinyVisionTest, ATileIsOneChunkOfTheExpectedSize) {
  const TinyVision vision;
  EXPECT_EQ(tokens_per_tile(vision), 4);
  const std::vector<float> embedding = encode(vision, tile_);
  EXPECT_EQ(embedding.size(), 4U * 64U);
  EXPECT_EQ(embedding, encode(vision, tile_));
  EXPECT_GT(nmse(encode(vision, random_picture(112, 112, 2)), embedding), 1e-3);
}

TEST_F(TinyVisionTest, TheOrderOfThePositionTableMatters) {
  const std::vector<float> first = encode({.class_first = true}, tile_);
  EXPECT_GT(nmse(encode({.class_first = false}, tile_), first), 1e-3);
}

TEST_F(TinyVisionTest, AttentionPathsAgree) {
  const TinyVision vision = {.type = GGML_TYPE_F32};
  const std::vector<float> flash = encode(vision, tile_);
  EXPECT_TRUE(nmse_at_most(encode(vision, tile_, {.flash_attn = false}), flash, 1e-5));
}

TEST_F(TinyVisionTest, TheFormWithoutBiasesLoads) {
  EXPECT_EQ(encode({.rms_qk_norm = true}, tile_).size(), 4U * 64U);
}

TEST_F(TinyVisionTest, NamedTensorsArrive) {
  write_tiny_vision({}, mmproj_);
  MtmdOracle oracle(text_, mmproj_);
  oracle.tap().want({"pos_embed", "layer_out-1"});
  oracle.encode_tile(tile_.pixels, 112);
  EXPECT_THAT(ne_of(oracle.tap().find("pos_embed")), testing::ElementsAre(64, 65, 1, 1));
  EXPECT_THAT(ne_of(oracle.tap().find("layer_out-1")), testing::ElementsAre(64, 65, 1, 1));
}

TEST_F(TinyVisionTest, ALargePictureIsTilesThenTheOverview) {
  write_tiny_vision({}, mmproj_);
  MtmdOracle oracle(text_, mmproj_);
  const RgbPicture picture = random_picture(336, 224, /*seed=*/1);
  const auto chunks = oracle.chunks("a" + MtmdOracle::marker() + "b", {&picture, 1});
  ASSERT_EQ(chunks.size(), 9U);
  const TinyVocab vocab = make_tiny_vocab();
  const auto token = [&](int32_t id) { return vocab.tokens.at(static_cast<size_t>(id)); };
  ASSERT_EQ(chunks.front().tokens.size(), 2U);
  EXPECT_EQ(token(chunks.front().tokens[0]) + token(chunks.front().tokens[1]), "a<img>");
  EXPECT_EQ(token(chunks.back().tokens.at(0)), "</img>");
  for (size_t i = 1; i < 8; ++i) EXPECT_EQ(chunks[i].n_image_tokens, 4);

  // The first tile is the top left corner, as it is: the picture fits the grid exactly.
  RgbPicture corner{.width = 112, .height = 112};
  for (int y = 0; y < 112; ++y) {
    const auto row = picture.pixels.begin() + y * 336 * 3;
    corner.pixels.insert(corner.pixels.end(), row, row + 112 * 3);
  }
  EXPECT_TRUE(bit_equal(oracle.encode(picture)[0], oracle.encode_tile(corner.pixels, 112)));
}

// Damage that llama.cpp reports. What makes it abort cannot be tested here; our own loader must
// refuse that first.
class Damage : public testing::TestWithParam<std::pair<const char*, GgufMutations>> {};

TEST_P(Damage, IsReportedByLlama) {
  const TempDir dir;
  write_tiny_text({}, dir.file("text.gguf"), GetParam().second);
  try {
    const LlamaOracle oracle(dir.file("text.gguf"));
    FAIL() << "loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_THAT(error.what(), testing::HasSubstr("error loading model"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Damage,
    testing::Values(
        std::pair{"MissingTensor", GgufMutations{.omit_tensors = {"blk.1.ffn_up.weight"}}},
        std::pair{"WrongShape",
                  GgufMutations{.reshape_tensors = {{"blk.0.attn_k.weight", {64, 64}}}}},
        std::pair{"MissingKey", GgufMutations{.omit_keys = {"qwen3.embedding_length"}}},
        std::pair{"WrongKey", GgufMutations{.set_keys = {{"general.architecture", "nonesuch"}}}},
        std::pair{"WrongKeyType", GgufMutations{.set_keys = {{"qwen3.block_count", "two"}}}},
        std::pair{"NoData", GgufMutations{.data = GgufMutations::Data::kNone}}),
    [](const auto& param) { return param.param.first; });

TEST(DamageByHand, TruncatedAndDuplicatedAreReported) {
  const TempDir dir;
  const std::string path = dir.file("text.gguf");
  write_tiny_text({}, path);
  truncate_file(path, std::filesystem::file_size(path) - 1000);
  EXPECT_THROW(LlamaOracle{path}, Error);
  truncate_file(path, 100);
  EXPECT_THROW(LlamaOracle{path}, Error);
  truncate_file(path, 0);
  EXPECT_THROW(LlamaOracle{path}, Error);
  write_tiny_text({}, path);
  patch_file(path, "blk.0.attn_k.weight", "blk.0.attn_v.weight");
  EXPECT_THROW(LlamaOracle{path}, Error);
  EXPECT_THROW(LlamaOracle{dir.file("nothing")}, Error);
}

TEST(DamageByHand, AMutationMustHitSomething) {
  const TempDir dir;
  const std::string path = dir.file("text.gguf");
  EXPECT_THROW(write_tiny_text({}, path, {.omit_tensors = {"none"}}), Error);
  EXPECT_THROW(write_tiny_text({}, path, {.omit_keys = {"none"}}), Error);
  EXPECT_THROW(write_tiny_text({.type = GGML_TYPE_Q8_0}, path,
                               {.reshape_tensors = {{"blk.0.attn_q.weight", {48, 64}}}}),
               Error);
}

}  // namespace
}  // namespace plateau::test

#include "model/model_config.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/model_config_fixture.h"

namespace plateau::model {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST_F(ModelConfigTest, ReadsWhatTheFileSays) {
  const ModelConfig config = read(
      {.n_layer = 3, .n_head = 6, .n_head_kv = 3, .head_dim = 24, .n_ff = 96, .rms_eps = 1e-5F});
  EXPECT_EQ(config.architecture, Architecture::kQwen3);
  EXPECT_EQ(config.arch_name, "qwen3");
  EXPECT_EQ(config.name, "tiny random qwen3");
  EXPECT_EQ(config.n_layer, 3);
  EXPECT_EQ(config.n_embd, 64);
  EXPECT_EQ(config.n_head, 6);
  EXPECT_EQ(config.n_head_kv, 3);
  EXPECT_EQ(config.head_dim, 24);
  EXPECT_EQ(config.n_ff, 96);
  EXPECT_EQ(config.n_vocab, static_cast<int>(test::make_tiny_vocab().tokens.size()));
  EXPECT_EQ(config.n_ctx_train, 32768);
  EXPECT_FLOAT_EQ(config.rope_freq_base, 1e6F);
  EXPECT_EQ(config.rope_freq_scale, 1.0F);
  EXPECT_FLOAT_EQ(config.rms_eps, 1e-5F);
  EXPECT_FALSE(config.tied_embeddings);
  EXPECT_TRUE(config.has_chat_template);
  EXPECT_EQ(config.kv_bytes_per_token(GGML_TYPE_F16, GGML_TYPE_F32), 3 * 3 * 24 * (2 + 4));

  const ModelConfig tied = read({.arch = "qwen2", .tied = true, .chat_template = false});
  EXPECT_EQ(tied.architecture, Architecture::kQwen2);
  EXPECT_TRUE(tied.tied_embeddings);
  EXPECT_FALSE(tied.has_chat_template);
  EXPECT_FALSE(tied.has_mrope());
}

TEST_F(ModelConfigTest, ReadsMRopeSections) {
  using Sections = std::array<int, 4>;
  const ModelConfig config = read({.arch = "qwen2vl", .n_embd = 512, .head_dim = 128});
  EXPECT_EQ(config.architecture, Architecture::kQwen2VL);
  EXPECT_TRUE(config.has_mrope());
  EXPECT_EQ(config.rope_sections, (Sections{16, 24, 24, 0}));  // as published
  EXPECT_EQ(read({.arch = "qwen2vl", .rope_sections = {8, 0, 0, 0}}).rope_sections,
            (Sections{8, 0, 0, 0}));
  EXPECT_EQ(read({.arch = "qwen2vl", .rope_sections = {0, 0, 8, 0}}).rope_sections,
            (Sections{0, 0, 8, 0}));
  EXPECT_EQ(
      read(kQwen2VL,
           {.set_keys = {{"qwen2vl.rope.dimension_sections", std::vector<uint32_t>{4, 2, 2, 0}}}})
          .rope_sections,
      (Sections{4, 2, 2, 0}));
}

TEST_F(ModelConfigTest, MRopeSectionsAreChecked) {
  const std::string key = "qwen2vl.rope.dimension_sections";
  std::vector<Case> cases = {
      {"none", {.omit_keys = {key}}, ErrorCode::kCorrupt, {key, "4 numbers", "got 0"}},
      {"a number", {.set_keys = {{key, uint32_t{2}}}}, ErrorCode::kCorrupt, {key, "array", "u32"}},
      {"floats",
       {.set_keys = {{key, std::vector<float>{2, 3, 3, 0}}}},
       ErrorCode::kCorrupt,
       {key, "integers"}},
      {"strings",
       {.set_keys = {{key, std::vector<std::string>{"2", "3", "3", "0"}}}},
       ErrorCode::kCorrupt,
       {key, "integers"}},
      {"a fourth component",
       {.set_keys = {{key, std::vector<int32_t>{2, 2, 2, 2}}}},
       ErrorCode::kUnsupported,
       {key, "fourth", "got 2"}}};
  for (const size_t n : {0U, 1U, 3U, 5U, 100000U}) {
    cases.push_back({std::to_string(n) + " numbers",
                     {.set_keys = {{key, std::vector<int32_t>(n, 2)}}},
                     ErrorCode::kCorrupt,
                     {key, "4 numbers", "got " + std::to_string(n)}});
  }
  const auto kMin = std::numeric_limits<int32_t>::min(), kBig = std::numeric_limits<int32_t>::max();
  for (const std::vector<int32_t>& sections : {std::vector<int32_t>{2, 3, 2, 0},
                                               {2, 3, 4, 0},
                                               {0, 0, 0, 0},
                                               {-1, 5, 4, 0},
                                               {9, -1, 0, 0},
                                               {kBig, kBig, 10, 0},
                                               {kBig, 1, 8, kMin},
                                               {kMin, kBig, 9, 0},
                                               {4, 4, 4, -4}}) {
    cases.push_back({std::to_string(sections[0]),
                     {.set_keys = {{key, sections}}},
                     ErrorCode::kCorrupt,
                     {key, "8 frequency pairs", std::to_string(sections[1])}});
  }
  expect_refused(kQwen2VL, cases);
}

TEST_F(ModelConfigTest, LayersMayEachStateTheSame) {
  const ModelConfig config =
      read(kQwen3, {.set_keys = {{"qwen3.attention.head_count", std::vector<uint32_t>{4, 4}},
                                 {"qwen3.attention.head_count_kv", std::vector<int32_t>{2, 2}}}});
  EXPECT_EQ(config.n_head, 4);
  EXPECT_EQ(config.n_head_kv, 2);
}

TEST_F(ModelConfigTest, WhatMayBeAbsentHasADefault) {
  EXPECT_EQ(read({.n_head_kv = 4}, {.omit_keys = {"qwen3.attention.head_count_kv"}}).n_head_kv, 4);
  const ModelConfig config =
      read(kQwen3, {.omit_keys = {"qwen3.attention.key_length", "qwen3.attention.value_length",
                                  "qwen3.rope.freq_base", "general.name",
                                  "tokenizer.ggml.bos_token_id", "tokenizer.ggml.add_bos_token"}});
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.rope_freq_base, 10000.0F);
  EXPECT_EQ(config.name, "");
}

// As libllama reads these keys; parity of the logits is in tests/graph/decoder_test.cc.
TEST_F(ModelConfigTest, RopeScalingIsReadAsLibllamaReadsIt) {
  const auto scale = [&](std::map<std::string, GgufValue> keys) {
    return read(kQwen3, {.set_keys = std::move(keys)}).rope_freq_scale;
  };
  EXPECT_EQ(scale({{"qwen3.rope.scaling.factor", 4.0F}}), 0.25F);
  EXPECT_EQ(scale({{"qwen3.rope.scale_linear", 4.0F}}), 0.25F);
  EXPECT_EQ(scale({{"qwen3.rope.scaling.type", "linear"}, {"qwen3.rope.scaling.factor", 2.0F}}),
            0.5F);
  EXPECT_EQ(scale({{"qwen3.rope.scaling.factor", 2.0F}, {"qwen3.rope.scale_linear", 4.0F}}), 0.5F);
  EXPECT_EQ(scale({{"qwen3.rope.scaling.type", "linear"}}), 1.0F);
  EXPECT_EQ(scale({{"qwen3.rope.scaling.type", "none"}, {"qwen3.rope.scaling.factor", 2.0F}}),
            1.0F);
}

TEST_F(ModelConfigTest, AnotherArchitectureIsNamed) {
  for (const std::string arch : {"phi3", "", "gemma3", "qwen3vl"}) {
    SCOPED_TRACE(arch);
    expect_error(
        [&] {
          read(kQwen3, {.set_keys = {{"general.architecture", arch}}});
        },
        ErrorCode::kUnsupported,
        {path_, "general.architecture", supported_architectures(), "got " + arch});
  }
  expect_error(
      [&] {
        read(kQwen3, {.set_keys = {{"general.architecture", uint32_t{3}}}});
      },
      ErrorCode::kCorrupt, {path_, "general.architecture", "string", "u32"});
  expect_error([&] { read(kQwen3, {.omit_keys = {"general.architecture"}}); }, ErrorCode::kCorrupt,
               {path_, "general.architecture", "none"});
  EXPECT_EQ(supported_architectures(), "llama, qwen2, qwen2vl, qwen3");
}

TEST_F(ModelConfigTest, AProjectorInPlaceOfTheTextModelIsNamed) {
  test::write_tiny_vision({}, path_);
  expect_error([&] { read_model_config(GgufFile::open(path_)); }, ErrorCode::kUnsupported,
               {path_, "text model", "--mmproj"});
}

TEST_F(ModelConfigTest, EveryNumberIsChecked) {
  for (const TinyTextModel& model : {kQwen3, kQwen2, kQwen2VL, kLlama}) {
    const std::string arch = model.arch + ".";
    std::vector<Case> cases;
    const auto refuse = [&](const std::string& key, const GgufValue& value, ErrorCode code,
                            std::vector<std::string> parts) {
      parts.push_back(arch + key);
      cases.push_back({key, {.set_keys = {{arch + key, value}}}, code, parts});
    };
    for (const std::string key : {"block_count", "embedding_length", "context_length",
                                  "feed_forward_length", "attention.head_count"}) {
      cases.push_back({"no " + key,
                       {.omit_keys = {arch + key}},
                       ErrorCode::kCorrupt,
                       {arch + key, "integer", "none"}});
      refuse(key, uint32_t{0}, ErrorCode::kCorrupt, {"between 1", "got 0"});
      refuse(key, int32_t{-1}, ErrorCode::kCorrupt, {"between 1", "got -1"});
      refuse(key, kMax, ErrorCode::kCorrupt, {"between 1", "got 4294967295"});
      refuse(key, std::numeric_limits<uint64_t>::max(), ErrorCode::kCorrupt, {"between 1"});
      refuse(key, "two", ErrorCode::kCorrupt, {"integer", "str"});
      refuse(key, 2.0F, ErrorCode::kCorrupt, {"integer", "f32"});
      refuse(key, true, ErrorCode::kCorrupt, {"integer", "bool"});
    }
    refuse("block_count", std::vector<uint32_t>{2}, ErrorCode::kCorrupt, {"integer", "arr"});
    for (const uint32_t n : {513U, 100000U}) {
      refuse("block_count", n, ErrorCode::kCorrupt, {"between 1 and 512", std::to_string(n)});
    }
    refuse("attention.head_count_kv", uint32_t{0}, ErrorCode::kCorrupt, {"between 1 and 4"});
    refuse("attention.head_count_kv", uint32_t{3}, ErrorCode::kCorrupt, {"divide", "3"});
    refuse("attention.head_count_kv", uint32_t{8}, ErrorCode::kCorrupt, {"between 1 and 4", "8"});
    refuse("attention.head_count_kv", kMax, ErrorCode::kCorrupt, {"between 1 and 4"});
    refuse("attention.head_count_kv", std::vector<uint32_t>{2, 0}, ErrorCode::kUnsupported,
           {"same in every layer", "2, 0"});
    refuse("attention.head_count_kv", std::vector<uint32_t>{0, 0}, ErrorCode::kUnsupported,
           {"between 1", "0, 0"});
    refuse("attention.head_count", std::vector<uint32_t>{}, ErrorCode::kCorrupt, {"empty"});
    refuse("attention.head_count", std::vector<uint32_t>{4, 2}, ErrorCode::kUnsupported, {"4, 2"});
    refuse("attention.head_count", std::vector<float>{4, 4}, ErrorCode::kCorrupt, {"integers"});
    refuse("attention.key_length", uint32_t{0}, ErrorCode::kCorrupt, {"between 1 and 512"});
    refuse("attention.key_length", kMax, ErrorCode::kCorrupt, {"between 1 and 512"});
    refuse("attention.value_length", uint32_t{0}, ErrorCode::kCorrupt, {"between 1 and 512"});
    cases.push_back({"value_length",
                     {.set_keys = {{arch + "attention.value_length", uint32_t{8}}}},
                     ErrorCode::kUnsupported,
                     {"16 and 8"}});
    cases.push_back({"odd head size",
                     {.set_keys = {{arch + "attention.key_length", uint32_t{15}},
                                   {arch + "attention.value_length", uint32_t{15}}}},
                     ErrorCode::kUnsupported,
                     {"multiple of 8", "15"}});
    cases.push_back({"no eps",
                     {.omit_keys = {arch + "attention.layer_norm_rms_epsilon"}},
                     ErrorCode::kCorrupt,
                     {"layer_norm_rms_epsilon", "none"}});
    for (const char* key : {"attention.layer_norm_rms_epsilon", "rope.freq_base",
                            "rope.scaling.factor", "rope.scale_linear"}) {
      for (const float value : {0.0F, -1.0F, kNan, kInf}) {
        refuse(key, value, ErrorCode::kCorrupt, {"positive"});
      }
      refuse(key, 1e300, ErrorCode::kCorrupt, {"positive"});  // infinite as a float
      refuse(key, uint32_t{1}, ErrorCode::kCorrupt, {"float", "u32"});
      refuse(key, "one", ErrorCode::kCorrupt, {"float", "str"});
    }
    for (const uint32_t n : {0U, kMax}) {
      refuse("rope.dimension_count", n, ErrorCode::kCorrupt, {"between 1 and 512"});
    }
    for (const uint32_t n : {7U, 8U, 32U}) {
      refuse("rope.dimension_count", n, ErrorCode::kUnsupported, {"16", std::to_string(n)});
    }
    for (const std::string type : {"yarn", "longrope", "bogus", ""}) {
      refuse("rope.scaling.type", type, ErrorCode::kUnsupported, {"none or linear", "got " + type});
    }
    refuse("rope.scaling.type", uint32_t{1}, ErrorCode::kCorrupt, {"string", "u32"});
    refuse("rope.scaling.attn_factor", 2.0F, ErrorCode::kUnsupported, {"got 2"});
    for (const char* key : {"expert_count", "expert_used_count", "expert_group_count",
                            "nextn_predict_layers", "attention.sliding_window"}) {
      refuse(key, uint32_t{2}, ErrorCode::kUnsupported, {"got 2"});
      refuse(key, "two", ErrorCode::kCorrupt, {"integer", "str"});
    }
    refuse("attention.causal", false, ErrorCode::kUnsupported, {"true", "false"});
    expect_refused(model, cases);
  }
}

TEST_F(ModelConfigTest, NumbersThatContradictTheTensorsAreRefused) {
  const auto expect_shape_error = [&](const std::string& key, uint32_t value,
                                      const std::string& tensor) {
    SCOPED_TRACE(key);
    expect_error(
        [&] {
          read(kQwen3, {.set_keys = {{key, value}}});
        },
        ErrorCode::kCorrupt, {path_, tensor, "expected", "got"});
  };
  expect_shape_error("qwen3.embedding_length", 32, "token_embd.weight");
  expect_shape_error("qwen3.feed_forward_length", 3, "blk.0.ffn_gate.weight");
  expect_shape_error("qwen3.attention.head_count", 2, "blk.0.attn_q.weight");
  expect_shape_error("qwen3.attention.head_count_kv", 1, "blk.0.attn_k.weight");
  expect_shape_error("qwen3.attention.head_count_kv", 4, "blk.0.attn_k.weight");
  expect_error(
      [&] {
        read(kQwen3, {.set_keys = {{"qwen3.block_count", uint32_t{3}}}});
      },
      ErrorCode::kCorrupt, {path_, "blk.2.attn_norm.weight", "none"});
  expect_error(
      [&] {
        read(kQwen3, {.set_keys = {{"qwen3.block_count", uint32_t{1}}}});
      },
      ErrorCode::kUnsupported, {path_, "blk.1."});
  expect_error(
      [&] {
        read(kQwen2, {.set_keys = {{"qwen2.attention.key_length", uint32_t{32}},
                                   {"qwen2.attention.value_length", uint32_t{32}}}});
      },
      ErrorCode::kCorrupt, {path_, "4 heads of 32", "64"});
  expect_error(
      [&] {
        read(kQwen2VL,
             {.set_keys = {{"qwen2vl.attention.key_length", uint32_t{32}},
                           {"qwen2vl.attention.value_length", uint32_t{32}},
                           {"qwen2vl.rope.dimension_sections", std::vector<int32_t>{4, 6, 6, 0}}}});
      },
      ErrorCode::kCorrupt, {path_, "4 heads of 32", "64"});
  expect_error(
      [&] {
        read(kQwen3, {.set_keys = {{"qwen3.attention.head_count", uint32_t{3}},
                                   {"qwen3.attention.head_count_kv", uint32_t{3}}},
                      .omit_keys = {"qwen3.attention.key_length"}});
      },
      ErrorCode::kCorrupt, {path_, "attention.head_count", "3", "64"});
}

}  // namespace
}  // namespace plateau::model

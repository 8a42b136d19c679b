#include "model/vision_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/expect_error.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::model {
namespace {

using test::expect_error;
using test::GgufMutations;
using test::GgufValue;
using test::TinyVision;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();

const TinyVision kLayerNormForm = {};
const TinyVision kRmsForm = {.rms_qk_norm = true};
// For tests that go through all tensors.
const TinyVision kOneLayer[] = {{.n_layer = 1}, {.n_layer = 1, .rms_qk_norm = true}};

class VisionConfigTest : public testing::Test {
 protected:
  VisionConfig read(const TinyVision& vision, GgufMutations mutations = {}) {
    mutations.data = GgufMutations::Data::kSparse;  // only metadata is read
    write_tiny_vision(vision, path_, mutations);
    return read_vision_config(GgufFile::open(path_));
  }
  void expect_refused(const GgufMutations& mutations, ErrorCode code,
                      std::vector<std::string> parts) {
    SCOPED_TRACE(testing::PrintToString(parts));
    parts.push_back(path_);
    expect_error([&] { read(kLayerNormForm, mutations); }, code, parts);
  }
  void expect_key_refused(const std::string& key, const GgufValue& value, ErrorCode code,
                          std::vector<std::string> parts) {
    parts.push_back(key);
    expect_refused({.set_keys = {{key, value}}}, code, parts);
  }
  test::TempDir dir_;
  std::string path_ = dir_.file("mmproj.gguf");
};

TEST_F(VisionConfigTest, ReadsWhatTheFileSays) {
  const VisionConfig config = read({.tile = 84,
                                    .n_layer = 3,
                                    .n_ff = 96,
                                    .scale_factor = 2,
                                    .projection_dim = 32,
                                    .min_tiles = 2,
                                    .max_tiles = 9});
  EXPECT_EQ(config.projector_type, "internvl");
  EXPECT_EQ(config.name, "tiny random internvl");
  EXPECT_EQ(config.internvl().tile_size, 84);
  EXPECT_EQ(config.patch_size, 14);
  EXPECT_EQ(config.n_embd, 64);
  EXPECT_EQ(config.n_layer, 3);
  EXPECT_EQ(config.n_head, 4);
  EXPECT_EQ(config.n_ff, 96);
  EXPECT_EQ(config.internvl().scale_factor, 2);
  EXPECT_EQ(config.n_embd_out, 32);
  EXPECT_FLOAT_EQ(config.norm_eps, 1e-6F);
  EXPECT_THAT(config.image_mean, testing::ElementsAre(0.485F, 0.456F, 0.406F));
  EXPECT_THAT(config.image_std, testing::ElementsAre(0.229F, 0.224F, 0.225F));
  EXPECT_EQ(config.internvl().min_tiles, 2);
  EXPECT_EQ(config.internvl().max_tiles, 9);
  EXPECT_FALSE(config.internvl().rms_norm);
  EXPECT_FALSE(config.internvl().qk_norm);
  EXPECT_EQ(config.n_patches(), 36);
  EXPECT_EQ(config.tokens_per_tile(), 9);

  const VisionConfig rms = read(kRmsForm);
  EXPECT_TRUE(rms.internvl().rms_norm);
  EXPECT_TRUE(rms.internvl().qk_norm);
}

TEST_F(VisionConfigTest, WhatMayBeAbsentHasADefault) {
  const VisionConfig config =
      read(kLayerNormForm,
           {.set_keys = {{"clip.vision.projector_type", "internvl"}},
            .omit_keys = {"clip.vision.preproc_min_tiles", "clip.vision.preproc_max_tiles",
                          "clip.projector_type", "clip.vision.projection_dim", "general.name"}});
  EXPECT_EQ(config.internvl().min_tiles, 1);
  EXPECT_EQ(config.internvl().max_tiles, 12);
}

TEST_F(VisionConfigTest, ATextModelInPlaceOfTheProjectorIsNamed) {
  test::write_tiny_text({}, path_);
  expect_error([&] { read_vision_config(GgufFile::open(path_)); }, ErrorCode::kUnsupported,
               {path_, "vision projector", "qwen3", "-m"});
}

TEST_F(VisionConfigTest, AnotherProjectorIsNamed) {
  for (const std::string type : {"resampler", "qwen3vl_merger", "bogus"}) {
    expect_key_refused("clip.projector_type", type, ErrorCode::kUnsupported,
                       {"internvl", "got " + type});
  }
  expect_refused({.omit_keys = {"clip.projector_type"}}, ErrorCode::kUnsupported,
                 {"clip.projector_type", "none"});
  expect_key_refused("clip.projector_type", uint32_t{1}, ErrorCode::kCorrupt, {"string", "u32"});
  expect_refused({.omit_keys = {"clip.has_vision_encoder"}}, ErrorCode::kUnsupported,
                 {"vision encoder", "none"});
  expect_refused({.set_keys = {{"clip.has_vision_encoder", false}}}, ErrorCode::kUnsupported,
                 {"vision encoder", "none"});
  expect_key_refused("clip.has_vision_encoder", "yes", ErrorCode::kCorrupt, {"bool", "str"});
}

TEST_F(VisionConfigTest, AnotherActivationIsRefused) {
  expect_refused({.omit_keys = {"clip.use_gelu"}}, ErrorCode::kUnsupported, {"clip.use_gelu"});
  expect_key_refused("clip.use_gelu", false, ErrorCode::kUnsupported, {"false"});
  expect_key_refused("clip.use_silu", true, ErrorCode::kUnsupported, {"true and true"});
}

TEST_F(VisionConfigTest, EveryNumberIsChecked) {
  const std::string prefix = "clip.vision.";
  for (const std::string key :
       {"image_size", "patch_size", "embedding_length", "block_count", "attention.head_count",
        "feed_forward_length", "projector.scale_factor"}) {
    expect_refused({.omit_keys = {prefix + key}}, ErrorCode::kCorrupt,
                   {prefix + key, "integer", "none"});
    expect_key_refused(prefix + key, uint32_t{0}, ErrorCode::kCorrupt, {"between 1", "got 0"});
    expect_key_refused(prefix + key, int32_t{-4}, ErrorCode::kCorrupt, {"between 1", "got -4"});
    expect_key_refused(prefix + key, kMax, ErrorCode::kCorrupt, {"between 1", "got 4294967295"});
    expect_key_refused(prefix + key, 2.0F, ErrorCode::kCorrupt, {"integer", "f32"});
    expect_key_refused(prefix + key, "two", ErrorCode::kCorrupt, {"integer", "str"});
  }
  for (const std::string key : {"preproc_min_tiles", "preproc_max_tiles"}) {
    expect_key_refused(prefix + key, uint32_t{0}, ErrorCode::kCorrupt, {"between 1", "got 0"});
    expect_key_refused(prefix + key, kMax, ErrorCode::kCorrupt, {"between 1"});
    expect_key_refused(prefix + key, "two", ErrorCode::kCorrupt, {"integer", "str"});
  }
  expect_refused({.set_keys = {{prefix + "preproc_min_tiles", uint32_t{5}},
                               {prefix + "preproc_max_tiles", uint32_t{4}}}},
                 ErrorCode::kCorrupt, {"preproc_min_tiles", "at most", "4", "5"});
  for (const uint32_t size : {3U, 55U, 100U, 115U, 126U}) {
    expect_key_refused(prefix + "image_size", size, ErrorCode::kCorrupt,
                       {"multiple", "56", std::to_string(size)});
  }
  for (const uint32_t n : {0U, 3U}) {
    expect_key_refused(prefix + "attention.head_count_kv", n, ErrorCode::kUnsupported,
                       {"to be 4", std::to_string(n)});
  }
  EXPECT_NO_THROW(
      read(kLayerNormForm, {.set_keys = {{prefix + "attention.head_count_kv", uint32_t{4}}}}));
  expect_key_refused(prefix + "attention.head_count", uint32_t{3}, ErrorCode::kCorrupt,
                     {"divide 64", "3"});
  expect_key_refused(prefix + "attention.head_count", uint32_t{65}, ErrorCode::kCorrupt,
                     {"between 1 and 64", "65"});
}

TEST_F(VisionConfigTest, NumbersThatContradictEachOtherOrTheTensorsAreRefused) {
  const auto refuse = [&](const std::string& key, uint32_t value,
                          const std::vector<std::string>& parts,
                          ErrorCode code = ErrorCode::kCorrupt) {
    expect_refused({.set_keys = {{"clip.vision." + key, value}}}, code, parts);
  };
  refuse("patch_size", 3, {"patch_size", "multiple", "12", "112"});
  refuse("projector.scale_factor", 3, {"scale_factor", "multiple", "42", "112"});
  refuse("image_size", 224, {"v.position_embd.weight", "[64, 257]", "[64, 65]"});
  refuse("patch_size", 7, {"v.patch_embd.weight", "[7, 7, 3, 64]", "[14, 14, 3, 64]"});
  refuse("projector.scale_factor", 2, {"mm.model.mlp.0.weight", "[256]", "[1024]"});
  refuse("embedding_length", 32, {"v.patch_embd.weight", "[14, 14, 3, 32]", "[14, 14, 3, 64]"});
  refuse("feed_forward_length", 3, {"v.blk.0.ffn_up.weight", "[64, 3]", "[64, 128]"});
  refuse("block_count", 3, {"v.blk.2.", "none"});
  refuse("block_count", 1, {"v.blk.1."}, ErrorCode::kUnsupported);
}

TEST_F(VisionConfigTest, FloatsAreChecked) {
  const std::string eps = "clip.vision.attention.layer_norm_epsilon";
  for (const float value : {0.0F, -1.0F, kNan, kInf}) {
    expect_refused({.set_keys = {{eps, value}}}, ErrorCode::kCorrupt,
                   {"layer_norm_epsilon", "positive"});
  }
  expect_refused({.set_keys = {{eps, 1e300}}}, ErrorCode::kCorrupt, {"layer_norm_epsilon"});
  expect_refused({.omit_keys = {eps}}, ErrorCode::kCorrupt, {eps, "none"});
  expect_key_refused(eps, uint32_t{1}, ErrorCode::kCorrupt, {"float", "u32"});
  for (const std::string key : {"clip.vision.image_mean", "clip.vision.image_std"}) {
    expect_refused({.omit_keys = {key}}, ErrorCode::kCorrupt, {key, "3 numbers", "got 0"});
    expect_key_refused(key, std::vector<float>{1, 1}, ErrorCode::kCorrupt, {"3 numbers", "got 2"});
    expect_key_refused(key, std::vector<int32_t>{1, 1, 1}, ErrorCode::kCorrupt, {"f32"});
    expect_key_refused(key, 1.0F, ErrorCode::kCorrupt, {"array", "f32"});
    for (const float value : {kNan, kInf}) {
      expect_key_refused(key, std::vector<float>{1, value, 1}, ErrorCode::kCorrupt, {"numbers"});
    }
  }
  for (const float value : {0.0F, -1.0F}) {
    expect_key_refused("clip.vision.image_std", std::vector<float>{1, 1, value},
                       ErrorCode::kCorrupt, {"positive numbers"});
  }
}

TEST_F(VisionConfigTest, EveryTensorIsRequired) {
  for (const TinyVision& vision : {kLayerNormForm, kRmsForm}) {
    for (const test::PlannedTensor& tensor : plan_tiny_vision(vision).tensors) {
      SCOPED_TRACE((vision.rms_qk_norm ? "rms " : "layer norm ") + tensor.name);
      expect_error([&] { read(vision, {.omit_tensors = {tensor.name}}); }, ErrorCode::kCorrupt,
                   {path_, tensor.name, "none"});
    }
  }
}

TEST_F(VisionConfigTest, ATowerWithoutLayerScaleIsAccepted) {
  GgufMutations mutations;
  for (const char* name : {"v.blk.0.ls1", "v.blk.0.ls2", "v.blk.1.ls1", "v.blk.1.ls2"}) {
    mutations.omit_tensors.insert(std::string(name) + ".weight");
  }
  EXPECT_NO_THROW(read(kLayerNormForm, mutations));
}

TEST_F(VisionConfigTest, TheTwoFormsDoNotMix) {
  GgufMutations no_bias;
  for (const char* name : {"v.blk.0.ln1", "v.blk.0.ln2", "v.blk.1.ln1", "v.blk.1.ln2"}) {
    no_bias.omit_tensors.insert(std::string(name) + ".bias");
  }
  expect_refused(no_bias, ErrorCode::kUnsupported, {"ln1.bias", "neither"});
  GgufMutations both;
  for (const char* name :
       {"v.blk.0.attn_q", "v.blk.0.attn_k", "v.blk.1.attn_q", "v.blk.1.attn_k"}) {
    both.add_tensors.push_back({.name = std::string(name) + "_norm.weight", .ne = {64}});
  }
  expect_refused(both, ErrorCode::kUnsupported, {"attn_q_norm.weight", "both"});
}

TEST_F(VisionConfigTest, EveryTensorHasItsShape) {
  for (const TinyVision& vision : kOneLayer) {
    for (const test::PlannedTensor& tensor : plan_tiny_vision(vision).tensors) {
      std::vector<std::vector<int64_t>> shapes(2, tensor.ne);
      shapes[0].back() += 1;
      shapes[1].front() *= 2;
      if (tensor.ne.size() < 4) {
        shapes.push_back(tensor.ne);
        shapes.back().push_back(2);
      }
      for (const auto& ne : shapes) {
        std::array<int64_t, 4> full = {1, 1, 1, 1};
        std::copy(ne.begin(), ne.end(), full.begin());
        // The output's rows are n_embd_out, so that the tensor before disagrees.
        const bool rows = tensor.name == "mm.model.mlp.3.weight" && ne.size() == 2 &&
                          ne.front() == tensor.ne.front();
        SCOPED_TRACE(tensor.name + " " + shape_to_string(full));
        expect_error(
            [&] {
              read(vision, {.reshape_tensors = {{tensor.name, ne}}});
            },
            ErrorCode::kCorrupt,
            {path_, rows ? "mm.model.mlp.1.weight" : tensor.name,
             rows ? "[1024, 65]" : shape_to_string(full)});
      }
    }
  }
}

TEST_F(VisionConfigTest, EveryTensorHasATypeThatTheGraphTakes) {
  for (const TinyVision& vision : kOneLayer) {
    for (const test::PlannedTensor& tensor : plan_tiny_vision(vision).tensors) {
      std::vector<ggml_type> types = {GGML_TYPE_I16, GGML_TYPE_F64, GGML_TYPE_Q8_1};
      const bool is_matrix = tensor.ne.size() == 2 && tensor.name != "v.position_embd.weight";
      if (!is_matrix) types.insert(types.end(), {GGML_TYPE_BF16, GGML_TYPE_Q8_0});
      if (!is_matrix && tensor.ne.size() < 3) types.push_back(GGML_TYPE_F16);
      for (const ggml_type type : types) {
        if (tensor.ne.front() % ggml_blck_size(type) != 0) continue;
        SCOPED_TRACE(tensor.name + " " + ggml_type_name(type));
        expect_error(
            [&] {
              read(vision, {.retype_tensors = {{tensor.name, type}}});
            },
            ErrorCode::kUnsupported, {path_, tensor.name, ggml_type_name(type)});
      }
    }
  }
  EXPECT_NO_THROW(
      read(kLayerNormForm, {.retype_tensors = {{"v.blk.0.attn_q.weight", GGML_TYPE_Q8_0},
                                               {"v.blk.0.attn_k.weight", GGML_TYPE_BF16},
                                               {"v.patch_embd.weight", GGML_TYPE_F32}}}));
}

TEST_F(VisionConfigTest, ATensorThatTheTowerWouldLeaveOutIsRefused) {
  for (const std::string name :
       {"v.pre_ln.weight", "v.post_ln.weight", "v.blk.2.ln1.weight", "v.blk.0.attn_qkv.weight",
        "mm.model.mlp.2.weight", "v.blk.0.ffn_gate.weight"}) {
    expect_refused({.add_tensors = {{.name = name, .ne = {64}}}}, ErrorCode::kUnsupported, {name});
  }
}

}  // namespace
}  // namespace plateau::model

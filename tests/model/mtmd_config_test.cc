// Projectors that libmtmd runs: what is read, and that every damage which it would assert is
// refused before.
#include <gtest/gtest.h>

#include <string>

#include "model/vision_config.h"
#include "support/expect_error.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::model {
namespace {

using test::expect_error;
using test::GgufMutations;
using test::GgufValue;

class MtmdConfig : public testing::Test {
 protected:
  VisionConfig read_llava(const GgufMutations& mutations = {}, const test::TinyLlava& vision = {}) {
    write_tiny_llava(vision, path_, mutations);
    return read_vision_config(GgufFile::open(path_));
  }
  VisionConfig read_idefics3(const GgufMutations& mutations = {}) {
    test::write_tiny_idefics3({}, path_, mutations);
    return read_vision_config(GgufFile::open(path_));
  }
  void refuse_llava(const GgufMutations& mutations, ErrorCode code,
                    const std::vector<std::string>& parts) {
    expect_error([&] { read_llava(mutations); }, code, parts);
  }
  void refuse_idefics3(const GgufMutations& mutations, ErrorCode code,
                       const std::vector<std::string>& parts) {
    expect_error([&] { read_idefics3(mutations); }, code, parts);
  }

  test::TempDir dir_;
  std::string path_ = dir_.file("mmproj.gguf");
};

TEST_F(MtmdConfig, IsRead) {
  const VisionConfig llava = read_llava({}, {.grid_sizes = {56, 112, 112, 112}});
  EXPECT_TRUE(llava.is_mtmd());
  EXPECT_FALSE(llava.has_mrope());
  EXPECT_EQ(llava.projector_type, "mlp");
  EXPECT_EQ(llava.mtmd().chunk_size, 56);
  EXPECT_EQ(llava.chunk_side(), 4);
  EXPECT_EQ(llava.n_embd_out, 64);
  ASSERT_EQ(llava.mtmd().grid_sizes.size(), 2U);
  EXPECT_EQ(llava.mtmd().grid_sizes[0], (std::array{56, 112}));
  const VisionConfig smolvlm = read_idefics3();
  EXPECT_EQ(smolvlm.mtmd().merge, 2);
  EXPECT_EQ(smolvlm.mtmd().longest_edge, 224);
  EXPECT_EQ(smolvlm.chunk_side(), 2);
  EXPECT_NO_THROW(read_llava({}, {.swaps_ffn = true}));
  EXPECT_NO_THROW(read_llava({}, {.is_clip = false, .has_norms = true}));
  EXPECT_EQ(read_llava({}, {.projector_type = "janus_pro", .is_clip = false}).chunk_side(), 4);
  expect_error(
      [&] { read_llava({}, {.projector_type = "janus_pro", .is_clip = false, .swaps_ffn = true}); },
      ErrorCode::kCorrupt, {"ffn_up"});
  // Published LLaVA-NeXT files have it.
  EXPECT_NO_THROW(read_llava({.add_tensors = {{.name = "model.image_newline", .ne = {64}}}}));
}

TEST_F(MtmdConfig, WhatIsNeitherHereNorInTheLibraryIsNamed) {
  for (const std::string type : {"gemma3", "gemma4v", "deepseek4v"}) {
    refuse_llava({.set_keys = {{"clip.projector_type", type}}}, ErrorCode::kUnsupported,
                 {type, "non-causal"});
  }
  for (const std::string type : {"ultravox", "qwen2a"}) {
    refuse_llava({.set_keys = {{"clip.projector_type", type}}}, ErrorCode::kUnsupported,
                 {type, "sound"});
  }
  refuse_llava({.set_keys = {{"clip.projector_type", "resampler"}}}, ErrorCode::kUnsupported,
               {"resampler", "idefics3"});
  for (const char* key : {"clip.has_audio_encoder", "clip.has_gen_audio_encoder"}) {
    refuse_llava({.set_keys = {{key, true}}}, ErrorCode::kUnsupported, {key});
  }
}

// The library reads keys by type and asserts it.
TEST_F(MtmdConfig, KeysOfAnotherTypeAreRefused) {
  const std::vector<std::pair<const char*, GgufValue>> keys = {
      {"general.description", uint32_t{1}},
      {"clip.vision.projector_type", uint32_t{1}},
      {"clip.vision.mm_patch_merge_type", true},
      {"clip.has_audio_encoder", uint32_t{0}},
      {"clip.vision.embedding_length", int32_t{64}},
      {"clip.vision.image_size", uint64_t{56}},
      {"clip.vision.projection_dim", 64.0F},
      {"clip.vision.attention.head_dim", int32_t{16}},
      {"clip.vision.attention.layer_norm_epsilon", 1e-6},
      {"clip.minicpmv_version", uint32_t{2}},
      {"clip.use_gelu", uint32_t{1}}};
  for (const auto& [key, value] : keys) {
    SCOPED_TRACE(key);
    refuse_llava({.set_keys = {{key, value}}}, ErrorCode::kCorrupt, {key});
  }
  refuse_idefics3({.set_keys = {{"clip.vision.preproc_image_size", int32_t{224}}}},
                  ErrorCode::kCorrupt, {"preproc_image_size"});
}

TEST_F(MtmdConfig, NumbersThatDoNotAddUpAreRefused) {
  const std::string grid = "clip.vision.image_grid_pinpoints";
  for (const std::vector<int32_t>& sizes :
       {std::vector<int32_t>{56}, {56, 57}, {0, 56}, {-56, 56}, {56, 56 * 65}}) {
    refuse_llava({.set_keys = {{grid, sizes}}}, ErrorCode::kCorrupt, {grid});
  }
  refuse_llava({.set_keys = {{"clip.vision.image_size", uint32_t{57}}}}, ErrorCode::kCorrupt,
               {"image_size", "multiple of 14"});
  refuse_llava({.set_keys = {{"clip.vision.attention.head_dim", uint32_t{8}}}},
               ErrorCode::kUnsupported, {"head_dim"});
  refuse_llava({.set_keys = {{"clip.vision.feature_layer", std::vector<int32_t>{0, 99}}}},
               ErrorCode::kUnsupported, {"feature_layer"});
  refuse_llava({.set_keys = {{"clip.use_gelu", true}, {"clip.use_silu", true}}},
               ErrorCode::kCorrupt, {"use_gelu", "use_silu"});
  const std::string scale = "clip.vision.projector.scale_factor";
  refuse_idefics3({.omit_keys = {scale}}, ErrorCode::kCorrupt, {scale});
  refuse_idefics3({.set_keys = {{scale, uint32_t{1}}}}, ErrorCode::kCorrupt, {scale});
  refuse_idefics3({.set_keys = {{scale, uint32_t{3}}}}, ErrorCode::kCorrupt,
                  {"image_size", "multiple of 42"});
  refuse_idefics3({.set_keys = {{"clip.vision.preproc_image_size", uint32_t{1 << 20}}}},
                  ErrorCode::kCorrupt, {"preproc_image_size"});
}

TEST_F(MtmdConfig, EveryTensorIsChecked) {
  for (const test::PlannedTensor& tensor : test::plan_tiny_llava({}).tensors) {
    const bool is_optional = tensor.name == "v.class_embd" || tensor.name.ends_with(".bias");
    SCOPED_TRACE(tensor.name);
    std::vector<int64_t> ne = tensor.ne;
    ne.back() += 32;
    // Of the projector's middle width, nothing but its tensors tells.
    if (tensor.name != "mm.2.bias" && tensor.name != "mm.2.weight") {
      expect_error(
          [&] {
            read_llava({.reshape_tensors = {{tensor.name, ne}}});
          },
          ErrorCode::kCorrupt, {path_});
    }
    if (!is_optional) {
      expect_error([&] { read_llava({.omit_tensors = {tensor.name}}); }, ErrorCode::kCorrupt,
                   {path_});
    }
    if (tensor.ne.size() == 1) {
      expect_error(
          [&] {
            read_llava({.retype_tensors = {{tensor.name, GGML_TYPE_F16}}});
          },
          ErrorCode::kUnsupported, {tensor.name, "f32"});
    }
  }
  for (const test::PlannedTensor& tensor : test::plan_tiny_idefics3({}).tensors) {
    SCOPED_TRACE(tensor.name);
    std::vector<int64_t> ne = tensor.ne;
    ne.front() += 32;
    expect_error(
        [&] {
          read_idefics3({.reshape_tensors = {{tensor.name, ne}}});
        },
        ErrorCode::kCorrupt, {path_});
  }
  // The library would find these and compute with them.
  for (const std::string name : {"v.blk.0.attn_qkv.weight", "v.blk.0.ls1.weight",
                                 "v.blk.1.ffn_gate.weight", "v.blk.0.attn_q_norm.weight"}) {
    refuse_llava({.add_tensors = {{.name = name, .ne = {64}}}}, ErrorCode::kUnsupported, {name});
    refuse_idefics3({.add_tensors = {{.name = name, .ne = {64}}}}, ErrorCode::kUnsupported, {name});
  }
}

}  // namespace
}  // namespace plateau::model

// A Qwen2.5-VL projector's metadata: what is read, and that nothing wrong passes. What every
// projector has in common is tested by vision_config_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "model/vision_config.h"
#include "support/expect_error.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::model {
namespace {

using test::expect_error;
using test::GgufMutations;
using test::GgufValue;
using test::TinyQwenVision;

constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();

class Qwen25VlConfigTest : public testing::Test {
 protected:
  VisionConfig read(const TinyQwenVision& vision, GgufMutations mutations = {}) {
    mutations.data = GgufMutations::Data::kSparse;  // only metadata is read
    write_tiny_qwen_vision(vision, path_, mutations);
    return read_vision_config(GgufFile::open(path_));
  }
  void expect_refused(const GgufMutations& mutations, ErrorCode code,
                      std::vector<std::string> parts) {
    SCOPED_TRACE(testing::PrintToString(parts));
    parts.push_back(path_);
    expect_error([&] { read({.n_layer = 2}, mutations); }, code, parts);
  }
  void expect_key_refused(const std::string& key, const GgufValue& value, ErrorCode code,
                          std::vector<std::string> parts) {
    parts.push_back(key);
    expect_refused({.set_keys = {{key, value}}}, code, parts);
  }
  test::TempDir dir_;
  std::string path_ = dir_.file("mmproj.gguf");
};

TEST_F(Qwen25VlConfigTest, ReadsWhatTheFileSays) {
  const VisionConfig config = read(
      {.n_embd = 96, .n_layer = 3, .n_head = 3, .n_ff = 160, .full_every = 3, .projection_dim = 32},
      {.set_keys = {{"clip.vision.window_size", uint32_t{56}},
                    {"clip.vision.image_min_pixels", uint32_t{784}},
                    {"clip.vision.image_max_pixels", uint32_t{7840}}}});
  EXPECT_FALSE(config.is_internvl());
  EXPECT_EQ(config.projector_type, "qwen2.5vl_merger");
  EXPECT_EQ(config.patch_size, 14);
  EXPECT_EQ(config.n_embd, 96);
  EXPECT_EQ(config.n_layer, 3);
  EXPECT_EQ(config.n_head, 3);
  EXPECT_EQ(config.head_dim(), 32);
  EXPECT_EQ(config.n_ff, 160);
  EXPECT_EQ(config.n_embd_out, 32);
  EXPECT_EQ(config.token_size(), 28);
  EXPECT_EQ(config.frames_per_unit, 2);
  const Qwen25VlVision& vision = config.qwen25vl();
  EXPECT_EQ(vision.window_tokens, 2);
  EXPECT_EQ(vision.full_every, 3);
  EXPECT_FALSE(vision.is_full_attention(1));
  EXPECT_TRUE(vision.is_full_attention(2));
  EXPECT_EQ(vision.min_pixels, 784);
  EXPECT_EQ(vision.max_pixels, 7840);
  expect_error([&] { config.internvl(); }, ErrorCode::kInternal, {});
}

TEST_F(Qwen25VlConfigTest, WhatMayBeAbsentHasThePublishedValue) {
  const Qwen25VlVision vision = read({}).qwen25vl();
  EXPECT_EQ(vision.merge, 2);
  EXPECT_EQ(vision.window_tokens, 4);
  EXPECT_EQ(vision.min_pixels, 56 * 56);
  EXPECT_EQ(vision.max_pixels, 12'845'056);
}

TEST_F(Qwen25VlConfigTest, EveryNumberIsChecked) {
  const std::string prefix = "clip.vision.";
  for (const std::string key : {"patch_size", "embedding_length", "block_count",
                                "attention.head_count", "feed_forward_length"}) {
    expect_refused({.omit_keys = {prefix + key}}, ErrorCode::kCorrupt, {prefix + key, "none"});
    for (const GgufValue& value :
         {GgufValue(uint32_t{0}), GgufValue(int32_t{-4}), GgufValue(kMax), GgufValue(2.0F)}) {
      expect_key_refused(prefix + key, value, ErrorCode::kCorrupt, {});
    }
  }
  expect_refused({.omit_keys = {prefix + "n_wa_pattern"}}, ErrorCode::kCorrupt, {"n_wa_pattern"});
  expect_key_refused(prefix + "n_wa_pattern", int32_t{-1}, ErrorCode::kCorrupt, {"between 0"});
  expect_key_refused(prefix + "n_wa_pattern", kMax, ErrorCode::kCorrupt, {"between 0"});
  expect_key_refused(prefix + "n_wa_pattern", std::vector<int32_t>{7, 15}, ErrorCode::kCorrupt, {});
  expect_key_refused(prefix + "spatial_merge_size", uint32_t{1}, ErrorCode::kUnsupported,
                     {"to be 2"});
  expect_key_refused(prefix + "spatial_merge_size", uint32_t{0}, ErrorCode::kCorrupt,
                     {"between 1"});
  for (const uint32_t window : {1U, 27U, 100U, 113U, 28U * 17U}) {
    expect_key_refused(prefix + "window_size", window, ErrorCode::kUnsupported,
                       {"28", std::to_string(window)});
  }
  expect_key_refused(prefix + "window_size", uint32_t{0}, ErrorCode::kCorrupt, {"between 1"});
  expect_key_refused(prefix + "image_min_pixels", int32_t{0}, ErrorCode::kCorrupt, {"between 1"});
  expect_key_refused(prefix + "image_max_pixels", uint32_t{100}, ErrorCode::kCorrupt, {"at most"});
  // Heads of other widths would be summed in f16.
  expect_key_refused(prefix + "attention.head_count", uint32_t{8}, ErrorCode::kUnsupported,
                     {"multiple of 16", "64 / 8"});
  expect_key_refused("clip.use_silu", false, ErrorCode::kUnsupported, {"false"});
  expect_key_refused("clip.use_gelu", true, ErrorCode::kUnsupported, {"true and true"});
}

TEST_F(Qwen25VlConfigTest, NumbersThatContradictTheTensorsAreRefused) {
  const auto refuse = [&](const std::string& key, uint32_t value,
                          const std::vector<std::string>& parts,
                          ErrorCode code = ErrorCode::kCorrupt) {
    expect_refused({.set_keys = {{"clip.vision." + key, value}}}, code, parts);
  };
  refuse("patch_size", 7, {"v.patch_embd.weight", "[7, 7, 3, 64]", "[14, 14, 3, 64]"});
  refuse("feed_forward_length", 3, {"v.blk.0.ffn_gate.weight", "[64, 3]", "[64, 96]"});
  refuse("block_count", 3, {"v.blk.2.", "none"});
  refuse("block_count", 1, {"v.blk.1."}, ErrorCode::kUnsupported);
}

TEST_F(Qwen25VlConfigTest, EveryTensorIsRequiredInItsShapeAndType) {
  const TinyQwenVision vision = {.n_layer = 1};
  for (const test::PlannedTensor& tensor : plan_tiny_qwen_vision(vision).tensors) {
    SCOPED_TRACE(tensor.name);
    expect_error([&] { read(vision, {.omit_tensors = {tensor.name}}); }, ErrorCode::kCorrupt,
                 {path_, tensor.name});
    std::vector<int64_t> ne = tensor.ne;
    ne.front() *= 2;
    expect_error(
        [&] {
          read(vision, {.reshape_tensors = {{tensor.name, ne}}});
        },
        ErrorCode::kCorrupt, {path_, tensor.name});
    if (tensor.name != "mm.2.weight") {  // whose rows say how wide the embeddings are
      ne = tensor.ne;
      ne.back() += 1;
      expect_error(
          [&] {
            read(vision, {.reshape_tensors = {{tensor.name, ne}}});
          },
          ErrorCode::kCorrupt, {path_, tensor.name});
    }
    for (const ggml_type type : {GGML_TYPE_I16, GGML_TYPE_F64, GGML_TYPE_Q8_1}) {
      if (tensor.ne.front() % ggml_blck_size(type) != 0) continue;
      expect_error(
          [&] {
            read(vision, {.retype_tensors = {{tensor.name, type}}});
          },
          ErrorCode::kUnsupported, {path_, tensor.name, ggml_type_name(type)});
    }
  }
}

TEST_F(Qwen25VlConfigTest, ATensorThatTheTowerWouldLeaveOutIsRefused) {
  for (const std::string name : {"v.patch_embd.bias", "v.class_embd", "v.blk.0.ln1.bias",
                                 "v.position_embd.weight", "mm.1.weight", "a.blk.0.ln1.weight"}) {
    expect_refused({.add_tensors = {{.name = name, .ne = {64}}}}, ErrorCode::kUnsupported, {name});
  }
}

}  // namespace
}  // namespace plateau::model

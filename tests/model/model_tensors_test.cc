// The tensors that a text model must have, may have, and must not have.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/model_config_fixture.h"

namespace plateau::model {
namespace {

// For tests that go through all tensors.
const TinyTextModel kOneLayer[] = {{.arch = "qwen3", .n_layer = 1},
                                   {.arch = "qwen2", .n_layer = 1},
                                   {.arch = "qwen2vl", .n_layer = 1},
                                   {.arch = "llama", .n_layer = 1}};

TEST_F(ModelConfigTest, EveryTensorIsRequired) {
  for (const TinyTextModel& model : kOneLayer) {
    for (const test::PlannedTensor& tensor : plan_tiny_text(model).tensors) {
      if (tensor.name == "output.weight") continue;  // tied then
      SCOPED_TRACE(model.arch + " " + tensor.name);
      expect_error([&] { read(model, {.omit_tensors = {tensor.name}}); }, ErrorCode::kCorrupt,
                   {path_, tensor.name, "found none"});
    }
  }
  EXPECT_TRUE(read(kQwen3, {.omit_tensors = {"output.weight"}}).tied_embeddings);
}

TEST_F(ModelConfigTest, EveryTensorHasItsShape) {
  for (const TinyTextModel& model : kOneLayer) {
    for (const test::PlannedTensor& tensor : plan_tiny_text(model).tensors) {
      std::vector<std::vector<int64_t>> shapes(3, tensor.ne);
      shapes[0].back() += 32;
      shapes[1].front() *= 2;
      shapes[2].push_back(2);
      for (const auto& ne : shapes) {
        std::array<int64_t, 4> full = {1, 1, 1, 1};
        std::copy(ne.begin(), ne.end(), full.begin());
        // The rows of the embedding are the vocabulary's size, so that the token list disagrees.
        const bool rows =
            tensor.name == "token_embd.weight" && ne.front() == tensor.ne.front() && ne.size() == 2;
        SCOPED_TRACE(model.arch + " " + tensor.name + " " + shape_to_string(full));
        expect_error(
            [&] {
              read(model, {.reshape_tensors = {{tensor.name, ne}}});
            },
            ErrorCode::kCorrupt, {path_, tensor.name, rows ? "tokens" : shape_to_string(full)});
      }
    }
  }
}

TEST_F(ModelConfigTest, EveryTensorHasATypeThatTheGraphTakes) {
  for (const TinyTextModel& model : kOneLayer) {
    for (const test::PlannedTensor& tensor : plan_tiny_text(model).tensors) {
      const bool is_vector = tensor.ne.size() == 1;
      std::vector<ggml_type> types = {GGML_TYPE_I16, GGML_TYPE_F64, GGML_TYPE_Q8_1};
      if (is_vector) types.insert(types.end(), {GGML_TYPE_F16, GGML_TYPE_BF16});
      for (const ggml_type type : types) {
        if (tensor.ne.front() % ggml_blck_size(type) != 0) continue;
        SCOPED_TRACE(model.arch + " " + tensor.name + " " + ggml_type_name(type));
        expect_error(
            [&] {
              read(model, {.retype_tensors = {{tensor.name, type}}});
            },
            ErrorCode::kUnsupported, {path_, tensor.name, ggml_type_name(type)});
      }
    }
  }
}

TEST_F(ModelConfigTest, ATensorThatTheGraphWouldLeaveOutIsRefused) {
  const int64_t n_vocab = static_cast<int64_t>(test::make_tiny_vocab().tokens.size());
  const std::vector<test::PlannedTensor> others = {
      {.name = "output.bias", .ne = {n_vocab}},
      {.name = "rope_freqs.weight", .ne = {8}},
      {.name = "blk.0.attn_q.scale", .ne = {1}},
      {.name = "blk.0.attn_q.input_scale", .ne = {1}},
      {.name = "blk.0.attn_qkv.weight", .ne = {64, 128}},
      {.name = "blk.0.attn_output.bias", .ne = {64}, .type = GGML_TYPE_I32},
      {.name = "blk.2.attn_norm.weight", .ne = {64}},
      {.name = "blk.0.ffn_gate_exps.weight", .ne = {64, 128, 2}},
      {.name = "cls.output.weight", .ne = {64, 2}}};
  for (const TinyTextModel& model : {kQwen3, kQwen2, kQwen2VL, kLlama}) {
    for (const test::PlannedTensor& tensor : others) {
      SCOPED_TRACE(model.arch + " " + tensor.name);
      expect_error([&] { read(model, {.add_tensors = {tensor}}); }, ErrorCode::kUnsupported,
                   {path_, tensor.name});
    }
  }
  expect_refused(kQwen3, {{"q bias",
                           {.add_tensors = {{.name = "blk.0.attn_q.bias", .ne = {64}}}},
                           ErrorCode::kUnsupported,
                           {"blk.0.attn_q.bias"}}});
}

// Every required key: absent, of another type, and with values that libllama or ggml would assert
// on, or compute nonsense with.
}  // namespace
}  // namespace plateau::model

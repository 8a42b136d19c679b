// A measurement on a tiny model: what is compared is the same work, and the sizes are the true
// ones.
#include "bench/measure.h"

#include <gmock/gmock.h>

#include "bench/input.h"
#include "bench/llama_run.h"
#include "engine/sequence.h"
#include "support/compare.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::bench {
namespace {

using ::testing::HasSubstr;

class MeasureTest : public ::testing::Test {
 protected:
  MeasureTest() {
    test::write_tiny_text({.arch = "qwen2", .type = GGML_TYPE_F16}, dir_.file("a.gguf"));
    point_.engine.model_path = dir_.file("a.gguf");
    point_.engine.n_threads = 1;
    point_.n_input = 300;
    point_.n_decode = 3;
    point_.n_repeats = 2;
  }

  test::TempDir dir_;
  BenchPoint point_;
};

TEST_F(MeasureTest, BothSidesRunTheSameRows) {
  engine::LoadedModel loaded(point_.engine, {});
  const PlateauRun ours = run_plateau(point_, loaded, {}, nullptr);
  const engine::RequestPlan plan = plan_point(point_, loaded);
  const kv::TokenList no_tokens({});
  engine::Sequence sequence(loaded.language_model, loaded.backends, {.n_arena = 1}, no_tokens);
  std::vector<float> text;
  for (const engine::Piece& piece : plan.prompt.pieces()) {
    if (piece.kind == engine::PieceKind::kVisual) continue;
    const auto rows = sequence.runner().embed(piece.tokens);
    text.insert(text.end(), rows.begin(), rows.end());
  }
  LlamaRun llama(point_, plan, ours.n_largest_block, {});
  const auto units = open_units(point_, plan, loaded);
  const LlamaTimes theirs = llama.run(text, *units);
  EXPECT_LE(test::nmse(ours.logits, theirs.logits), 1e-6);
}

TEST_F(MeasureTest, CountsAndBytes) {
  const Measurement m = measure(point_, {});
  EXPECT_EQ(m.first.n_visual, 300);
  EXPECT_EQ(m.first.n_prompt, 348);
  EXPECT_EQ(m.first.n_kept, 348);
  EXPECT_EQ(m.first.kv_bytes, m.first.planned_kv_bytes);
  // 2 layers, 2 kv heads of 16, K and V, 2 bytes each; slots in steps of 256.
  EXPECT_EQ(m.first.kv_bytes, 512 * 2 * 2 * 16 * 2 * 2);
  EXPECT_GE(m.peak_anon_bytes, m.first.kv_bytes);
  EXPECT_GE(m.planned_compute_bytes, m.first.compute_bytes);
  ASSERT_TRUE(m.planned_peak_anon_bytes.has_value());
  EXPECT_GE(*m.planned_peak_anon_bytes, m.first.kv_bytes + m.first.compute_bytes);
  EXPECT_GE(m.peak_rss_bytes, m.loaded_anon_bytes);
  EXPECT_GT(m.ttft_ms.min, 0);
  EXPECT_LE(m.ttft_ms.min, m.ttft_ms.max);
  EXPECT_GE(m.ttft_ms.median, m.prefill_ms.median * 0.5);
  EXPECT_TRUE(m.decode_tok_s.has_value());
  EXPECT_FALSE(m.llama.has_value());
}

// Pairs of frames of 84 x 56 pixels: 3 x 2 tokens each, in both of the encoder's ways.
TEST_F(MeasureTest, FramesOfAFamilyThatMergesThem) {
  test::write_tiny_text({.arch = "qwen2vl"}, dir_.file("q.gguf"));
  test::write_tiny_qwen_vision({}, dir_.file("v.gguf"));
  point_.engine.model_path = dir_.file("q.gguf");
  point_.engine.mmproj_path = dir_.file("v.gguf");
  point_.input = InputKind::kFrames;
  point_.frame_width = 84;
  point_.frame_height = 56;
  for (const int64_t n_frames : {1, 8, 9}) {
    point_.n_input = n_frames;
    const Measurement m = measure(point_, {});
    EXPECT_EQ(m.first.n_visual, (n_frames + 1) / 2 * 6);
    EXPECT_EQ(m.first.n_prompt, m.first.n_visual + kTokensBefore + kTokensAfter);
    EXPECT_GT(m.encode_ms.median, 0);
    ASSERT_TRUE(m.planned_peak_anon_bytes.has_value());
    EXPECT_GE(*m.planned_peak_anon_bytes, m.first.kv_bytes + m.first.encoder_bytes);
  }
}

TEST_F(MeasureTest, FramesNeedAProjector) {
  point_.input = InputKind::kFrames;
  try {
    measure(point_, {});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("[--frames]"));
  }
}

TEST_F(MeasureTest, ABudgetBoundsTheCache) {
  point_.n_input = 2000;
  point_.request.kv.budget = 128;
  point_.request.kv.block = 256;
  const Measurement m = measure(point_, {});
  EXPECT_EQ(m.first.n_kept, 128);
  EXPECT_LE(m.first.n_arena, 512);
  EXPECT_EQ(m.first.kv_bytes, m.first.planned_kv_bytes);
  EXPECT_GT(m.select_ms.median, 0);
}

TEST_F(MeasureTest, ComparisonGivesRatiosOfPairs) {
  point_.against_llama_cpp = true;
  point_.n_ubatch = 64;
  const Measurement m = measure(point_, {});
  ASSERT_TRUE(m.llama.has_value());
  EXPECT_EQ(m.llama->n_ubatch, 64);
  EXPECT_GT(m.llama->ttft_ratio.min, 0);
  EXPECT_LE(m.llama->ttft_ratio.max, m.llama->ttft_ms.max / m.ttft_ms.min);
  EXPECT_GE(m.llama->ttft_ratio.min, m.llama->ttft_ms.min / m.ttft_ms.max);
  EXPECT_TRUE(m.llama->decode_ratio.has_value());
}

TEST_F(MeasureTest, AProfileCoversThePrefill) {
  point_.profile = true;
  point_.request.kv.budget = 128;
  const Measurement m = measure(point_, {});
  ASSERT_TRUE(m.profile.has_value());
  EXPECT_GT(m.profile->linear_ms, 0);
  EXPECT_GT(m.profile->attention_ms, 0);
  EXPECT_GT(m.profile->signals_ms, 0);
  EXPECT_LE(
      m.profile->linear_ms + m.profile->attention_ms + m.profile->signals_ms + m.profile->other_ms,
      m.profile->prefill_ms * 1.5);
}

TEST_F(MeasureTest, WithoutDecodingThereIsNoRate) {
  point_.n_decode = 0;
  EXPECT_FALSE(measure(point_, {}).decode_tok_s.has_value());
}

TEST_F(MeasureTest, CancellingEndsIt) {
  try {
    (void)measure(point_, [] { return true; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
}

TEST_F(MeasureTest, TilesNeedAProjectorAndNoLlamaCpp) {
  point_.input = InputKind::kTiles;
  for (const bool against : {false, true}) {
    point_.against_llama_cpp = against;
    try {
      (void)measure(point_, {});
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr("--tokens"));
    }
  }
}

TEST_F(MeasureTest, TilesGoThroughTheEncoder) {
  test::write_tiny_vision({}, dir_.file("v.gguf"));
  point_.engine.mmproj_path = dir_.file("v.gguf");
  point_.input = InputKind::kTiles;
  point_.n_input = 5;
  const Measurement m = measure(point_, {});
  EXPECT_EQ(m.first.n_visual, 5 * test::tokens_per_tile({}));
  EXPECT_GT(m.encode_ms.min, 0);
  EXPECT_GT(m.first.encoder_bytes, 0);
}

}  // namespace
}  // namespace plateau::bench

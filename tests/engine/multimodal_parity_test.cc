// The prompt's M-RoPE positions through our decoder against llama.cpp's: a picture, a film, cut
// into blocks at every row. What libmtmd feeds to llama.cpp is written out here: text as tokens,
// then the picture's rows as one batch whose positions are (start, start + row, start + column),
// then text that goes on behind the picture's longer side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/prompt_plan.h"
#include "graph/decoder_harness.h"
#include "support/compare.h"
#include "support/llama_oracle.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::test {
namespace {

using engine::PromptPlan;
using Position = LlamaOracle::Position;

// The same rows in blocks of the same sizes: the same kernels on the same numbers, equal to the
// bit. In blocks of other sizes, measured: up to 6e-12 with an f32 cache and llama.cpp's plain
// attention, 8e-6 with an f16 cache, where ggml's flash attention sums V in f16 below 64 queries.
constexpr double kAcrossBlocksNmse = 1e-5;

// An epsilon that changes no float: llama.cpp does not read that of qwen2vl
// (tests/graph/decoder_test.cc).
const TinyTextModel kTiny = {.arch = "qwen2vl",
                             .n_layer = 3,
                             .n_embd = 128,
                             .n_head = 4,
                             .head_dim = 32,
                             .rms_eps = 1e-30F,
                             .qk_gain = 3};
const std::vector<model::Token> kBefore = {10, 20, 30, 40, 50, 60, 70}, kAfter = {80, 90, 100};

struct Rows {
  std::vector<float> embeddings;
  std::vector<kv::Position> positions;
};

class MultimodalParity : public testing::Test {
 protected:
  MultimodalParity() { write_tiny_text(kTiny, path_); }

  /// The prompt's rows; those of pictures are noise.
  static Rows rows_of(const PromptPlan& prompt, Decoder& decoder) {
    Rows rows;
    WeightStream noise("picture", 1);
    for (const engine::Piece& piece : prompt.pieces()) {
      std::vector<float> values(static_cast<size_t>(piece.n_tokens() * kTiny.n_embd));
      if (piece.kind == engine::PieceKind::kVisual) {
        noise.fill(values, /*mean=*/0.0F, /*deviation=*/1.0F);
      } else {
        values = decoder.runner().embed(piece.tokens);
      }
      rows.embeddings.insert(rows.embeddings.end(), values.begin(), values.end());
      for (int i = 0; i < piece.n_tokens(); ++i) {
        rows.positions.push_back(prompt.position(piece, i));
      }
    }
    return rows;
  }

  static PromptPlan prompt_of(const engine::VisualLayout& medium) {
    PromptPlan prompt(engine::PositionRule::kMultimodal);
    prompt.add_text(kBefore);
    prompt.add_medium(medium);
    prompt.add_text(kAfter);
    return prompt;
  }

  /// Both sides run `rows` cut at `cuts`; the last block's logits.
  static std::vector<float> ours(Decoder& decoder, const Rows& rows, const std::vector<int>& cuts) {
    std::vector<float> logits;
    for_blocks(rows, cuts, [&](std::span<const float> e, std::span<const kv::Position> p) {
      logits = decoder.decode_embeddings(e, p);
    });
    return logits;
  }
  static std::vector<float> llamas(LlamaOracle& oracle, const Rows& rows,
                                   const std::vector<int>& cuts) {
    std::vector<float> logits;
    for_blocks(rows, cuts, [&](std::span<const float> e, std::span<const kv::Position> p) {
      std::vector<Position> positions;
      for (const kv::Position& q : p) positions.push_back({q.t, q.h, q.w});
      logits = oracle.decode_embeddings_at(e, positions);
    });
    return logits;
  }

  /// A picture of R x C as libmtmd feeds it, positions from its own formula.
  static std::vector<float> as_mtmd_feeds(LlamaOracle& oracle, const Rows& rows, int n_rows,
                                          int n_cols) {
    oracle.decode(kBefore);
    const int32_t start = oracle.next_pos();
    std::vector<Position> positions;
    for (int i = 0; i < n_rows * n_cols; ++i) {
      positions.push_back({start, start + i / n_cols, start + i % n_cols});
    }
    const auto width = static_cast<size_t>(kTiny.n_embd);
    oracle.decode_embeddings_at(
        std::span(rows.embeddings).subspan(kBefore.size() * width, positions.size() * width),
        positions);
    EXPECT_EQ(oracle.next_pos(), start + std::max(n_rows, n_cols));
    return oracle.decode(kAfter);
  }

  TempDir dir_;
  std::string path_ = dir_.file("text.gguf");

 private:
  template <typename Run>
  static void for_blocks(const Rows& rows, std::vector<int> cuts, Run run) {
    const auto width = static_cast<size_t>(kTiny.n_embd);
    size_t first = 0;
    cuts.push_back(static_cast<int>(rows.positions.size()));
    for (const int cut : cuts) {
      const auto n = static_cast<size_t>(cut) - first;
      run(std::span(rows.embeddings).subspan(first * width, n * width),
          std::span(rows.positions).subspan(first, n));
      first += n;
    }
  }
};

constexpr std::pair<int, int> kSizes[] = {{1, 1}, {1, 6}, {6, 1}, {5, 3}, {3, 8}, {9, 9}};

TEST_F(MultimodalParity, PicturesCutAtEveryRow) {
  LlamaOracle oracle(path_);
  for (const auto& [n_rows, n_cols] : kSizes) {
    const PromptPlan prompt = prompt_of({{{.n_grid_rows = n_rows, .n_grid_cols = n_cols}}});
    for (int row = 0; row <= n_rows; ++row) {
      SCOPED_TRACE(testing::Message() << n_rows << " x " << n_cols << " cut at row " << row);
      Decoder decoder(path_);
      const Rows rows = rows_of(prompt, decoder);
      const std::vector<int> cuts = {static_cast<int>(kBefore.size()) + row * n_cols};
      oracle.clear();
      const std::vector<float> got = ours(decoder, rows, cuts);
      EXPECT_TRUE(bit_equal(got, llamas(oracle, rows, cuts)));
      oracle.clear();
      EXPECT_TRUE(
          nmse_at_most(got, as_mtmd_feeds(oracle, rows, n_rows, n_cols), kAcrossBlocksNmse));
    }
  }
}

TEST_F(MultimodalParity, PicturesCutAtEveryTokenWithAnExactCache) {
  LlamaOracle oracle(path_,
                     {.type_k = GGML_TYPE_F32, .type_v = GGML_TYPE_F32, .flash_attn = false});
  for (const auto& [n_rows, n_cols] : {std::pair(5, 3), std::pair(3, 8)}) {
    const PromptPlan prompt = prompt_of({{{.n_grid_rows = n_rows, .n_grid_cols = n_cols}}});
    std::vector<float> want;
    for (int cut = 1; cut < static_cast<int>(prompt.n_tokens()); ++cut) {
      SCOPED_TRACE(testing::Message() << n_rows << " x " << n_cols << " cut at token " << cut);
      Decoder decoder(path_, {.type_k = CacheType::kF32, .type_v = CacheType::kF32});
      const Rows rows = rows_of(prompt, decoder);
      if (want.empty()) {
        oracle.clear();
        want = as_mtmd_feeds(oracle, rows, n_rows, n_cols);
      }
      EXPECT_TRUE(nmse_at_most(ours(decoder, rows, {cut}), want, kAcrossBlocksNmse));
    }
  }
}

// The blocks of the planner, however small: one token at a time, one row, several rows.
TEST_F(MultimodalParity, EveryBlockSizeWithAnExactCache) {
  constexpr int kRows = 9, kCols = 6;
  LlamaOracle oracle(path_,
                     {.type_k = GGML_TYPE_F32, .type_v = GGML_TYPE_F32, .flash_attn = false});
  const PromptPlan prompt = prompt_of({{{.n_grid_rows = kRows, .n_grid_cols = kCols}}});
  std::vector<float> want;
  for (const int n_block : {1, 2, 6, 7, 13, 30, 64}) {
    SCOPED_TRACE(n_block);
    Decoder decoder(path_, {.type_k = CacheType::kF32, .type_v = CacheType::kF32});
    const Rows rows = rows_of(prompt, decoder);
    if (want.empty()) want = as_mtmd_feeds(oracle, rows, kRows, kCols);
    EXPECT_TRUE(nmse_at_most(decoder.decode_embeddings(rows.embeddings, rows.positions, n_block),
                             want, kAcrossBlocksNmse));
  }
}

TEST_F(MultimodalParity, AFilmOfTwoSlicesCutAtEveryRow) {
  constexpr int kRows = 4, kCols = 5;
  const PromptPlan prompt =
      prompt_of({{{.n_grid_rows = kRows, .n_grid_cols = kCols}}, /*slice_t=*/{0, 2}});
  LlamaOracle oracle(path_);
  for (int row = 0; row <= 2 * kRows; ++row) {
    SCOPED_TRACE(row);
    Decoder decoder(path_);
    const Rows rows = rows_of(prompt, decoder);
    const std::vector<int> cuts = {static_cast<int>(kBefore.size()) + row * kCols};
    oracle.clear();
    EXPECT_TRUE(bit_equal(ours(decoder, rows, cuts), llamas(oracle, rows, cuts)));
    // And on: an answer, token by token.
    EXPECT_EQ(decoder.greedy(decoder.decode(kAfter), 8), [&] {
      oracle.decode(kAfter);
      return oracle.greedy(8);
    }());
  }
}

// That the comparisons can fail: with the positions of a model without M-RoPE, or with those of the
// transposed picture, the logits differ.
TEST_F(MultimodalParity, PositionsMatter) {
  const PromptPlan prompt = prompt_of({{{.n_grid_rows = 5, .n_grid_cols = 3}}});
  const PromptPlan transposed = prompt_of({{{.n_grid_rows = 3, .n_grid_cols = 5}}});
  Decoder right(path_), sequential(path_), other(path_);
  const Rows rows = rows_of(prompt, right);
  const std::vector<float> want = ours(right, rows, {});
  EXPECT_GT(nmse(sequential.decode_embeddings(rows.embeddings), want), 10 * kAcrossBlocksNmse);
  EXPECT_GT(
      nmse(other.decode_embeddings(rows.embeddings, rows_of(transposed, other).positions), want),
      10 * kAcrossBlocksNmse);
}

}  // namespace
}  // namespace plateau::test

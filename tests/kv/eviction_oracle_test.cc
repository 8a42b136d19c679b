// Eviction against llama.cpp: what all layers and heads evict alike can be removed there, too
// (llama_memory_seq_rm). llama.cpp keeps holes, ours moves rows; the next logits must agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "engine/prompt_plan.h"
#include "engine/protection.h"
#include "engine/sequence.h"
#include "kv/policy.h"
#include "model/backend.h"
#include "model/language_model.h"
#include "support/compare.h"
#include "support/llama_oracle.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::synth {

static void PrintTo(const TinyTextModel& model, std::ostream* out) { *out << model.arch; }

}  // namespace plateau::synth

namespace plateau::test {

namespace {

// Rows lie in another order, and so are summed; measured: below 1e-12.
constexpr double kNmse = 1e-5;
constexpr int kSinks = 4;
// llama.cpp does not read the epsilon of qwen2vl's norms (tests/graph/decoder_test.cc).
constexpr float kNoEps = 1e-30F;

/// Runs of numbers that are in `before` but not in `after`.
std::vector<std::pair<int32_t, int32_t>> gone(std::span<const int32_t> before,
                                              std::span<const int32_t> after) {
  std::vector<std::pair<int32_t, int32_t>> runs;
  for (const int32_t token : before) {
    if (std::binary_search(after.begin(), after.end(), token)) continue;
    if (!runs.empty() && runs.back().second == token) {
      ++runs.back().second;
    } else {
      runs.emplace_back(token, token + 1);
    }
  }
  return runs;
}

/// Keeps every third token, wherever it is, so that holes are everywhere.
class EveryThird final : public kv::Policy {
 public:
  void score(const kv::LayerSlots& layer, std::span<const std::vector<float>> /*signals*/,
             std::span<float> scores) const override {
    size_t i = 0;
    for (const auto& tokens : layer.tokens) {
      for (const int32_t token : tokens) {
        // The last one must stay: llama.cpp goes on after it.
        const bool is_last = token == tokens.back();
        scores[i++] = is_last ? 1e9F : static_cast<float>(token + (token % 3 == 0 ? 10000 : 0));
      }
    }
  }
};

class EvictionOracle : public testing::TestWithParam<TinyTextModel> {
 protected:
  EvictionOracle() { write_tiny_text(GetParam(), path_); }

  /// Feeds both sides the same blocks and evictions and compares the logits after every block.
  void compare(kv::Policy& policy, int budget, int n_block, int n_blocks) {
    LlamaOracle oracle(path_);
    const model::LanguageModel model = model::LanguageModel::load(path_, {});
    const model::Backends backends(model::Device::cpu(), /*n_threads=*/1);
    std::vector<kv::TokenInfo> info(static_cast<size_t>(n_block * n_blocks));
    for (size_t i = 0; i < info.size(); ++i) {
      info[i].position = kv::Position::sequential(static_cast<int32_t>(i));
      info[i].is_protected = i < kSinks;
    }
    const kv::TokenList table(info);
    engine::Sequence sequence(model, backends, {.n_arena = budget + n_block, .policy = &policy},
                              table);
    int n_evicted = 0;
    for (int block = 0; block < n_blocks; ++block) {
      SCOPED_TRACE(testing::Message() << "block " << block << " of " << n_block);
      std::vector<int32_t> tokens, positions, before;
      for (int i = 0; i < n_block; ++i) {
        positions.push_back(block * n_block + i);
        tokens.push_back((positions.back() * 97 + positions.back() / 7) % 256);
      }
      engine::Rows rows;
      std::vector<kv::Position> rotary;
      for (const int32_t position : positions) rotary.push_back(kv::Position::sequential(position));
      rows.append(sequence.runner().embed(tokens), rotary);
      const auto held = sequence.slots().tokens(0, 0);
      before.assign(held.begin(), held.end());
      before.insert(before.end(), positions.begin(), positions.end());
      const int n_keep = std::min(budget, static_cast<int>(before.size()));
      const std::vector<float> got =
          sequence.append(rows, n_keep, /*want_logits=*/true, /*rows_are_proxies=*/false);
      const std::vector<float> want = oracle.decode(tokens);
      ASSERT_TRUE(nmse_at_most(got, want, kNmse));
      ASSERT_EQ(argmax(got), argmax(want));
      const auto after = sequence.slots().tokens(0, 0);
      for (int il = 0; il < model.config().n_layer; ++il) {
        for (int head = 0; head < model.config().n_head_kv; ++head) {
          const auto tokens_of_head = sequence.slots().tokens(il, head);
          ASSERT_TRUE(std::equal(after.begin(), after.end(), tokens_of_head.begin()));
        }
      }
      for (const auto& [first, end] : gone(before, after)) {
        oracle.remove(first, end);
        n_evicted += end - first;
      }
      ASSERT_EQ(oracle.next_pos(), positions.back() + 1);
    }
    EXPECT_EQ(n_evicted, n_block * n_blocks - budget);
  }

  TempDir dir_;
  std::string path_ = dir_.file("text.gguf");
};

INSTANTIATE_TEST_SUITE_P(
    Models, EvictionOracle,
    testing::Values(TinyTextModel{.arch = "qwen2", .n_layer = 3, .qk_gain = 1.5F},
                    TinyTextModel{
                        .arch = "qwen2vl", .n_layer = 3, .rms_eps = kNoEps, .qk_gain = 1.5F},
                    TinyTextModel{.arch = "qwen3", .n_layer = 3, .head_dim = 32, .qk_gain = 1.5F}),
    [](const auto& model) { return model.param.arch; });

TEST_P(EvictionOracle, SinkRecentEqualsRemovingTheMiddle) {
  const auto policy = kv::make_policy("sink-recent", {});
  compare(*policy, /*budget=*/60, /*n_block=*/32, /*n_blocks=*/10);
  compare(*policy, /*budget=*/10, /*n_block=*/7, /*n_blocks=*/12);
  compare(*policy, /*budget=*/300, /*n_block=*/64, /*n_blocks=*/10);  // beyond the first padding
}

TEST_P(EvictionOracle, OneTokenAtATimeAsWhenDecoding) {
  const auto policy = kv::make_policy("sink-recent", {});
  compare(*policy, /*budget=*/20, /*n_block=*/1, /*n_blocks=*/60);
}

TEST_P(EvictionOracle, HolesEverywhere) {
  EveryThird policy;
  compare(policy, /*budget=*/50, /*n_block=*/24, /*n_blocks=*/10);
}

/// Keeps text, and of pictures and films what came last.
class OldestMediaFirst final : public kv::Policy {
 public:
  void score(const kv::LayerSlots& layer, std::span<const std::vector<float>> /*signals*/,
             std::span<float> scores) const override {
    size_t i = 0;
    for (const auto& tokens : layer.info) {
      for (const kv::TokenInfo& info : tokens) {
        scores[i++] = static_cast<float>(info.position.t + (info.medium < 0 ? 100000 : 0));
      }
    }
  }
};

// llama.cpp forgets by temporal position, which the tokens of a picture, or of one slice of a film,
// share. So these are evicted whole; that part of a picture may go is what the other tests show.
TEST(MultimodalEvictionOracle, PicturesAndSlicesThatWereEvicted) {
  const TempDir dir;
  const std::string path = dir.file("text.gguf");
  write_tiny_text({.arch = "qwen2vl", .n_layer = 3, .rms_eps = kNoEps, .qk_gain = 1.5F}, path);
  LlamaOracle oracle(path);
  const model::LanguageModel model = model::LanguageModel::load(path, {});
  const model::Backends backends(model::Device::cpu(), /*n_threads=*/1);
  const std::vector<model::Token> text = {10, 20, 30, 40, 50, 60};
  engine::PromptPlan prompt(engine::PositionRule::kMultimodal);
  for (const auto& [rows, cols] : {std::pair(5, 3), std::pair(2, 7), std::pair(4, 4)}) {
    prompt.add_text(text);
    prompt.add_medium({{{.n_grid_rows = rows, .n_grid_cols = cols}}});
  }
  const engine::VisualLayout film = {{{.n_grid_rows = 2, .n_grid_cols = 3}}, {0, 2, 4}};
  prompt.add_text(text);
  prompt.add_medium(film);
  prompt.add_text(text);

  OldestMediaFirst policy;
  const engine::PromptTokens table(prompt, engine::protect(prompt, /*budget=*/0, /*n_window=*/0));
  engine::Sequence sequence(model, backends, {.n_arena = 256, .policy = &policy}, table);
  WeightStream noise("rows", 1);
  int n_media = 0, n_media_kept = 0;  // units run, and of them the latest that are held
  const auto feed = [&](const engine::Piece& piece, int n_forget) {
    engine::Rows rows;
    if (piece.kind == engine::PieceKind::kVisual) {
      rows.embeddings.resize(static_cast<size_t>(piece.n_tokens() * model.config().n_embd));
      noise.fill(rows.embeddings, /*mean=*/0.0F, /*deviation=*/1.0F);
      ++n_media;
      ++n_media_kept;
    } else {
      rows.embeddings = sequence.runner().embed(piece.tokens);
    }
    std::vector<LlamaOracle::Position> positions;
    for (int i = 0; i < piece.n_tokens(); ++i) {
      const kv::Position p = prompt.position(piece, i);
      rows.positions.push_back(p);
      positions.push_back({p.t, p.h, p.w});
    }
    // The units that go after this block, and where llama.cpp has them.
    std::vector<int32_t> forgotten;
    int n_keep = sequence.n_held() + rows.n();
    int unit = 0;
    for (const engine::Piece& other : prompt.pieces()) {
      if (other.kind != engine::PieceKind::kVisual) continue;
      const bool is_held = unit >= n_media - n_media_kept && unit < n_media;
      if (is_held && static_cast<int>(forgotten.size()) < n_forget) {
        forgotten.push_back(prompt.position(other, 0).t);
        n_keep -= other.n_tokens();
      }
      ++unit;
    }
    ASSERT_EQ(static_cast<int>(forgotten.size()), n_forget);
    n_media_kept -= n_forget;
    const std::vector<float> got =
        sequence.append(rows, n_keep, /*want_logits=*/true, /*rows_are_proxies=*/false);
    ASSERT_TRUE(nmse_at_most(got, oracle.decode_embeddings_at(rows.embeddings, positions), kNmse));
    for (const int32_t t : forgotten) oracle.remove(t, t + 1);
  };
  const std::vector<int> forget = {0, 0, 0, 1, 0, 1, 1, 0, 1, 0, 1};  // after each piece
  ASSERT_EQ(prompt.pieces().size(), forget.size());
  for (size_t i = 0; i < forget.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "piece " << i);
    feed(prompt.pieces()[i], forget[i]);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_EQ(n_media_kept, 1);
  // And on, with tokens.
  for (int i = 0; i < 5; ++i) {
    const model::Token token = 70 + i;
    const auto position = static_cast<int32_t>(prompt.next_position() + i);
    engine::Rows row = {sequence.runner().embed({&token, 1}), {kv::Position::sequential(position)}};
    const std::vector<float> got =
        sequence.append_generated(row, sequence.n_held() + 1, /*n_recent=*/0);
    ASSERT_EQ(oracle.next_pos(), position);
    ASSERT_TRUE(nmse_at_most(got, oracle.decode({&token, 1}), kNmse));
  }
}

// That the comparison can fail: without the removal the logits differ.
TEST_P(EvictionOracle, ForgettingMatters) {
  LlamaOracle remembers(path_), forgets(path_);
  std::vector<int32_t> tokens;
  for (int i = 0; i < 64; ++i) tokens.push_back((i * 97) % 256);
  const auto next = std::span(tokens).first(8);
  remembers.decode(tokens);
  forgets.decode(tokens);
  forgets.remove(4, 40);
  EXPECT_GT(nmse(forgets.decode(next), remembers.decode(next)), 100 * kNmse);
}

}  // namespace
}  // namespace plateau::test

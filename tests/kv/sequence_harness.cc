#include "kv/sequence_harness.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/prefill.h"
#include "ggml-backend.h"
#include "ggml.h"
#include "graph/block_runner.h"
#include "kv/draw.h"
#include "support/temp_dir.h"

namespace plateau::test {
namespace {

constexpr int kTileRows = 3, kTileCols = 4;

model::LanguageModel load(const TinyTextModel& tiny) {
  const TempDir dir;
  write_tiny_text(tiny, dir.file("text.gguf"));
  return model::LanguageModel::load(dir.file("text.gguf"), {});
}

std::vector<model::Token> some_tokens(Rng& rng, int n) {
  std::vector<model::Token> tokens;
  for (int i = 0; i < n; ++i) tokens.push_back(draw(rng, 0, 255));
  return tokens;
}

}  // namespace

void RecordingPolicy::score(const kv::LayerSlots& layer,
                            std::span<const std::vector<float>> signals,
                            std::span<float> scores) const {
  policy_.score(layer, signals, scores);
  if (layer.il == 0) records.clear();
  Record record = {.il = layer.il, .n_held = layer.n_held, .tokens = {}, .scores = {}};
  for (const auto& tokens : layer.tokens) record.tokens.emplace_back(tokens.begin(), tokens.end());
  record.scores.assign(scores.begin(), scores.end());
  records.push_back(std::move(record));
}

float GivenScorePolicy::score_of(int il, int head, int32_t token) {
  Rng rng(static_cast<uint64_t>((il * 64 + head) * 100000 + token));
  return static_cast<float>(rng() % 16);
}

void GivenScorePolicy::score(const kv::LayerSlots& layer,
                             std::span<const std::vector<float>> /*signals*/,
                             std::span<float> scores) const {
  size_t i = 0;
  for (int head = 0; head < layer.n_head_kv; ++head) {
    for (const int32_t token : layer.tokens[static_cast<size_t>(head)]) {
      scores[i++] = score_of(layer.il, head, token);
    }
  }
}

TinyWorld::TinyWorld(const TinyTextModel& tiny, int n_tiles)
    : model_(load(tiny)),
      backends_(model::Device::cpu(), /*n_threads=*/1),
      prompt_(model_.config().has_mrope() ? engine::PositionRule::kMultimodal
                                          : engine::PositionRule::kSequential) {
  Rng rng(7);
  prompt_.add_text(some_tokens(rng, 6));
  prompt_.add_marker(some_tokens(rng, 1), /*binds_next=*/true);
  engine::VisualLayout picture;
  for (int tile = 0; tile < n_tiles; ++tile) {
    picture.units.push_back({.n_grid_rows = kTileRows,
                             .n_grid_cols = kTileCols,
                             .grid_h0 = tile / 2 * kTileRows,
                             .grid_w0 = tile % 2 * kTileCols});
  }
  prompt_.add_medium(picture);
  prompt_.add_marker(some_tokens(rng, 1), /*binds_next=*/false);
  prompt_.add_text(some_tokens(rng, 9));

  kv::KvCache unused(model_, /*n_slot=*/1, CacheType::kF32, CacheType::kF32);
  const graph::BlockRunner runner(model_, backends_, unused);
  const auto n_embd = static_cast<size_t>(model_.config().n_embd);
  for (const engine::Piece& piece : prompt_.pieces()) {
    std::vector<kv::Position> positions;
    for (int i = 0; i < piece.n_tokens(); ++i) positions.push_back(prompt_.position(piece, i));
    rows_.append(piece.kind == engine::PieceKind::kVisual
                     ? draw_normal(rng, n_embd * positions.size())
                     : runner.embed(piece.tokens),
                 positions);
  }
}

engine::Rows TinyWorld::slice(int begin, int end) const {
  const auto n_embd = static_cast<size_t>(model_.config().n_embd);
  const auto first = static_cast<size_t>(begin), n = static_cast<size_t>(end - begin);
  engine::Rows rows;
  rows.append(std::span(rows_.embeddings).subspan(first * n_embd, n * n_embd),
              std::span(rows_.positions).subspan(first, n));
  return rows;
}

PromptRun::PromptRun(TinyWorld& world, kv::Policy* policy, const RunOptions& options)
    : world_(world), policy_(policy) {
  const int budget = policy != nullptr ? options.budget : 0;
  const int window = options.policy_options.window;
  blocks_ = engine::plan_blocks(
      world.prompt(), {.n_block = options.n_block, .n_bulk = options.n_bulk, .budget = budget});
  protection_ = engine::protect(world.prompt(), budget, window);
  std::vector<int> block_rows;
  for (const engine::BlockPlan& block : blocks_) block_rows.push_back(block.n_tokens());
  plan_ = kv::plan_budget({.block_rows = block_rows,
                           .budget = budget,
                           .strict = options.strict,
                           .evict_only_at_end = policy != nullptr && policy->evicts_only_at_end(),
                           .n_proxy = policy != nullptr && policy->needs_question() ? window : 0,
                           .n_decode = options.n_decode,
                           .n_protected = protection_.n_protected});
  tokens_ = std::make_unique<engine::PromptTokens>(world.prompt(), protection_);
  sequence_ = std::make_unique<engine::Sequence>(
      world.model(), world.backends(),
      engine::SequenceOptions{.n_arena = plan_.n_arena,
                              .cache_type_k = options.cache_type,
                              .cache_type_v = options.cache_type,
                              .policy = policy,
                              .policy_options = options.policy_options},
      *tokens_);
  if (policy != nullptr && policy->needs_question()) {
    sequence_->set_proxies(engine::question_rows(world.prompt(), sequence_->runner(), window));
  }
}

int PromptRun::n_proxy_of_next() const {
  const bool is_last = next_block_ + 1 == blocks_.size();
  const bool rows_are_proxies = is_last && next_step().n_rows >= sequence_->n_proxy();
  return next_step().evicts() && policy_->needs_question() && !rows_are_proxies
             ? sequence_->n_proxy()
             : 0;
}

void PromptRun::step() {
  const kv::BlockStep& step = next_step();
  const bool is_last = next_block_ + 1 == blocks_.size();
  logits_ = sequence_->append(world_.slice(n_done_, n_done_ + step.n_rows), step.n_after,
                              /*want_logits=*/is_last,
                              /*rows_are_proxies=*/is_last && step.n_rows >= sequence_->n_proxy());
  n_done_ += step.n_rows;
  ++next_block_;
}

const std::vector<float>& PromptRun::finish() {
  while (!is_done()) step();
  return logits_;
}

const std::vector<float>& PromptRun::generate(model::Token token, int n_recent) {
  const auto position = static_cast<int32_t>(world_.prompt().next_position() + n_generated_);
  const engine::Rows row = {sequence_->runner().embed(std::span(&token, 1)),
                            {kv::Position::sequential(position)}};
  const int n_past = sequence_->n_held() + 1;
  logits_ = sequence_->append_generated(
      row, n_past >= plan_.n_decode_limit ? plan_.n_decode_keep : n_past, n_recent);
  ++n_generated_;
  return logits_;
}

std::vector<std::vector<int32_t>> PromptRun::kept() const {
  std::vector<std::vector<int32_t>> result;
  for (int il = 0; il < slots().n_layer(); ++il) {
    for (int head = 0; head < slots().n_head_kv(); ++head) {
      const auto tokens = slots().tokens(il, head);
      result.emplace_back(tokens.begin(), tokens.end());
    }
  }
  return result;
}

std::vector<float> PromptRun::stored(const ggml_tensor* arena, int head) const {
  const auto n = static_cast<size_t>(slots().n_held());
  std::vector<char> raw(n * arena->nb[1]);
  ggml_backend_tensor_get(arena, raw.data(), static_cast<size_t>(head) * arena->nb[2], raw.size());
  std::vector<float> rows(n * static_cast<size_t>(arena->ne[0]));
  if (arena->type == GGML_TYPE_F32) {
    std::memcpy(rows.data(), raw.data(), raw.size());
  } else {
    ggml_get_type_traits(arena->type)
        ->to_float(raw.data(), rows.data(), static_cast<int64_t>(rows.size()));
  }
  return rows;
}

bool PromptRun::is_untouched_beyond_arena() const {
  const auto n_arena = static_cast<size_t>(plan_.n_arena);
  const kv::KvCache& cache = sequence_->cache();
  for (int il = 0; il < cache.n_layer(); ++il) {
    for (const ggml_tensor* arena : {cache.k(il), cache.v(il)}) {
      std::vector<char> tail((static_cast<size_t>(arena->ne[1]) - n_arena) * arena->nb[1]);
      for (size_t head = 0; head < static_cast<size_t>(arena->ne[2]); ++head) {
        ggml_backend_tensor_get(arena, tail.data(), head * arena->nb[2] + n_arena * arena->nb[1],
                                tail.size());
        if (std::any_of(tail.begin(), tail.end(), [](char byte) { return byte != 0; })) {
          return false;
        }
      }
    }
  }
  return true;
}

std::vector<int32_t> kept_by_sorting(std::span<const float> scores,
                                     std::span<const uint8_t> is_protected, int n_keep) {
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const auto slot_a = static_cast<size_t>(a), slot_b = static_cast<size_t>(b);
    if (is_protected[slot_a] != is_protected[slot_b]) return is_protected[slot_a] != 0;
    return is_protected[slot_a] == 0 && scores[slot_a] > scores[slot_b];
  });
  order.resize(static_cast<size_t>(n_keep));
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace plateau::test

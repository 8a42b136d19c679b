#include "engine/prefill.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "base/stopwatch.h"

namespace plateau::engine {
namespace {

Rows assemble(const PromptPlan& prompt, const BlockPlan& block, const graph::BlockRunner& runner,
              UnitSource* visuals) {
  Rows rows;
  std::vector<kv::Position> positions;
  for (const PieceSlice& slice : slices_of(prompt, block)) {
    const Piece piece = prompt.pieces()[slice.piece];
    const auto begin = static_cast<size_t>(slice.begin);
    const auto n = static_cast<size_t>(slice.n_tokens());
    positions.clear();
    for (int i = slice.begin; i < slice.end; ++i) positions.push_back(prompt.position(piece, i));
    if (piece.kind == PieceKind::kVisual) {
      PLATEAU_CHECK(visuals != nullptr);
      const std::span<const float> unit = visuals->unit(piece.medium, piece.unit);
      const size_t n_embd = unit.size() / static_cast<size_t>(piece.n_tokens());
      rows.append(unit.subspan(begin * n_embd, n * n_embd), positions);
    } else {
      rows.append(runner.embed(piece.tokens.subspan(begin, n)), positions);
    }
  }
  return rows;
}

}  // namespace

Rows question_rows(const PromptPlan& prompt, const graph::BlockRunner& runner, int n_window) {
  std::vector<model::Token> tokens;
  std::vector<kv::Position> positions;
  for (size_t i = prompt.pieces().size(); i > 0; --i) {
    const Piece piece = prompt.pieces()[i - 1];
    if (piece.kind == PieceKind::kVisual) break;
    for (int j = piece.n_tokens() - 1; j >= 0 && static_cast<int>(tokens.size()) < n_window; --j) {
      tokens.push_back(piece.tokens[static_cast<size_t>(j)]);
      positions.push_back(prompt.position(piece, j));
    }
  }
  std::reverse(tokens.begin(), tokens.end());
  std::reverse(positions.begin(), positions.end());
  return {runner.embed(tokens), std::move(positions)};
}

PrefillResult prefill(const PromptPlan& prompt, const std::vector<BlockPlan>& blocks,
                      const kv::BudgetPlan& budget, Sequence& sequence, UnitSource* visuals,
                      const std::function<void(int, int64_t)>& on_block) {
  PLATEAU_CHECK(budget.steps.size() == blocks.size());
  PrefillResult result;
  int64_t n_done = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const kv::BlockStep& step = budget.steps[i];
    const bool is_last = i + 1 == blocks.size();
    const Rows rows = assemble(prompt, blocks[i], sequence.runner(), visuals);
    PLATEAU_CHECK(rows.n() == step.n_rows && sequence.n_held() == step.n_before);

    const Stopwatch watch;
    result.logits = sequence.append(rows, step.n_after, /*want_logits=*/is_last,
                                    /*rows_are_proxies=*/is_last && rows.n() >= sequence.n_proxy());
    result.prefill_ms += watch.ms();
    n_done += rows.n();
    on_block(static_cast<int>(i), n_done);
  }
  return result;
}

}  // namespace plateau::engine

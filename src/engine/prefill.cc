#include "engine/prefill.h"

#include <span>

#include "base/check.h"
#include "base/stopwatch.h"

namespace plateau::engine {
namespace {

/// One block's rows, ready to run.
struct Rows {
  std::vector<float> embeddings;   // [n_embd, n_rows]
  std::vector<int32_t> positions;  // [n_rows]
};

Rows assemble(const PromptPlan& prompt, const BlockPlan& block, const graph::BlockRunner& runner,
              VisualSource* visuals) {
  Rows rows;
  for (const PieceSlice& slice : block.slices) {
    const Piece& piece = prompt.pieces()[static_cast<size_t>(slice.piece)];
    const auto begin = static_cast<size_t>(slice.begin);
    const auto n = static_cast<size_t>(slice.n_tokens());
    if (piece.kind == PieceKind::kVisual) {
      PLATEAU_CHECK(visuals != nullptr);
      const std::span<const float> unit = visuals->unit(piece.image, piece.unit);
      const size_t n_embd = unit.size() / static_cast<size_t>(piece.n_tokens());
      const auto part = unit.subspan(begin * n_embd, n * n_embd);
      rows.embeddings.insert(rows.embeddings.end(), part.begin(), part.end());
    } else {
      const auto part = runner.embed(std::span(piece.tokens).subspan(begin, n));
      rows.embeddings.insert(rows.embeddings.end(), part.begin(), part.end());
    }
    for (int i = slice.begin; i < slice.end; ++i) {
      rows.positions.push_back(prompt.position(piece, i));
    }
  }
  return rows;
}

}  // namespace

PrefillResult prefill(const PromptPlan& prompt, const std::vector<BlockPlan>& blocks,
                      graph::BlockRunner& runner, VisualSource* visuals,
                      const std::function<void(int64_t)>& on_block) {
  PrefillResult result;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Rows rows = assemble(prompt, blocks[i], runner, visuals);
    const Stopwatch watch;
    graph::BlockResult done = runner.run({.embeddings = rows.embeddings,
                                          .positions = rows.positions,
                                          .n_cached = result.n_past,
                                          .want_logits = i + 1 == blocks.size()});
    result.prefill_ms += watch.ms();
    result.n_past += static_cast<int>(rows.positions.size());
    result.logits = std::move(done.logits);
    on_block(result.n_past);
  }
  return result;
}

}  // namespace plateau::engine

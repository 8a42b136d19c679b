// Packs a prompt into blocks of at most b tokens, cutting only at structural borders where the
// sizes allow it (arXiv:2604.16734, section on block-wise prefill). Pure. Tested by
// tests/engine/block_planner_test.cc.
#pragma once

#include <vector>

#include "engine/prompt_plan.h"

namespace plateau::engine {

/// Tokens [begin, end) of the prompt.
struct BlockPlan {
  int64_t begin = 0;
  int64_t end = 0;

  int n_tokens() const { return static_cast<int>(end - begin); }
};

/// Tokens [begin, end) of one piece.
struct PieceSlice {
  size_t piece = 0;  // its index
  int begin = 0;
  int end = 0;

  int n_tokens() const { return end - begin; }
};

/// What a block is made of, in order.
std::vector<PieceSlice> slices_of(const PromptPlan& prompt, const BlockPlan& block);

/// Tokens of the largest frame: a picture, or one slice of a film, with the markers or labels that
/// open and close it. 1 where there is none.
int64_t largest_frame(const PromptPlan& prompt);

struct BlockOptions {
  int n_block = 1024;  // b: the largest block, in tokens
  /// The bulk stage: while blocks still fit `budget`, they may be as large as n_bulk. 0: no bulk
  /// stage.
  int n_bulk = 0;
  int64_t budget = 0;
  /// A frame that fits a block starts a new one rather than be cut.
  bool whole_frames = false;
};

/// Rules, in this order:
///  1. No block is larger than n_block tokens; in the bulk stage, than what is left of the budget
///  or
///     n_bulk, where that is more.
///  2. With whole_frames, a frame is not cut where it fits one block; what opens and closes it goes
///     with it where that fits, too.
///  3. A visual unit is never cut when it fits one block; when it does not, it is cut at its grid
///     rows; a grid row that does not fit is cut anywhere.
///  4. A piece that binds the next one starts a new block with it rather than end one alone.
///  5. Text fills up blocks and is cut anywhere.
/// REQUIRES: n_block >= 1.
std::vector<BlockPlan> plan_blocks(const PromptPlan& prompt, const BlockOptions& options);

}  // namespace plateau::engine

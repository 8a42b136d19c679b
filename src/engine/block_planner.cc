#include "engine/block_planner.h"

#include <algorithm>

#include "base/check.h"

namespace plateau::engine {
namespace {

class Packer {
 public:
  Packer(const PromptPlan& prompt, int n_block) : prompt_(prompt), n_block_(n_block) {}

  std::vector<BlockPlan> pack() {
    const auto& pieces = prompt_.pieces();
    for (int i = 0; i < static_cast<int>(pieces.size()); ++i) {
      if (pieces[static_cast<size_t>(i)].kind == PieceKind::kVisual) {
        add_visual(i);
      } else {
        add_text(i);
      }
    }
    close();
    return std::move(blocks_);
  }

 private:
  const Piece& piece(int i) const { return prompt_.pieces()[static_cast<size_t>(i)]; }
  int room() const { return n_block_ - n_tokens_; }

  void add_text(int i) {
    const int n = piece(i).n_tokens();
    for (int begin = 0; begin < n;) {
      if (room() == 0) close();
      const int end = std::min(n, begin + room());
      append({i, begin, end});
      begin = end;
    }
  }

  void add_visual(int i) {
    const int n = piece(i).n_tokens();
    if (n <= n_block_) {
      if (n > room()) close_before_unit(n);
      append({i, 0, n});
      return;
    }
    const int n_cols = piece(i).n_grid_cols;
    for (int begin = 0; begin < n;) {
      const int left = n - begin;
      int take = std::min(left, room());
      // Whole grid rows, as long as one fits an empty block.
      if (take < left && n_cols <= n_block_) take -= take % n_cols;
      if (take == 0) {
        close();
        continue;
      }
      append({i, begin, begin + take});
      begin += take;
    }
  }

  /// Closes the block, but takes a binding piece at its end along into the next one.
  void close_before_unit(int n_unit) {
    std::vector<PieceSlice> carried;
    if (!current_.slices.empty()) {
      const PieceSlice last = current_.slices.back();
      const Piece& binding = piece(last.piece);
      const bool whole = last.begin == 0 && last.end == binding.n_tokens();
      if (binding.binds_next && whole && current_.slices.size() > 1 &&
          last.n_tokens() + n_unit <= n_block_) {
        current_.slices.pop_back();
        carried.push_back(last);
      }
    }
    close();
    for (const PieceSlice& slice : carried) append(slice);
  }

  void append(const PieceSlice& slice) {
    current_.slices.push_back(slice);
    n_tokens_ += slice.n_tokens();
    PLATEAU_CHECK(n_tokens_ <= n_block_);
  }

  void close() {
    if (!current_.slices.empty()) blocks_.push_back(std::move(current_));
    current_ = {};
    n_tokens_ = 0;
  }

  const PromptPlan& prompt_;
  int n_block_;
  std::vector<BlockPlan> blocks_;
  BlockPlan current_;
  int n_tokens_ = 0;
};

}  // namespace

int BlockPlan::n_tokens() const {
  int n = 0;
  for (const PieceSlice& slice : slices) n += slice.n_tokens();
  return n;
}

std::vector<BlockPlan> plan_blocks(const PromptPlan& prompt, int n_block) {
  PLATEAU_CHECK(n_block >= 1);
  return Packer(prompt, n_block).pack();
}

}  // namespace plateau::engine

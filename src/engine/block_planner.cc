#include "engine/block_planner.h"

#include <algorithm>

#include "base/check.h"

namespace plateau::engine {
namespace {

class Packer {
 public:
  Packer(const PromptPlan& prompt, const BlockOptions& options)
      : prompt_(prompt), options_(options), n_block_(next_block_size()) {}

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

  /// The limit of the block that starts after n_done_ tokens.
  int next_block_size() const {
    const int64_t left = std::min<int64_t>(options_.budget - n_done_, options_.n_bulk);
    return static_cast<int>(std::max<int64_t>(left, options_.n_block));
  }

  void add_text(int i) {
    const int n = piece(i).n_tokens();
    for (int begin = 0; begin < n;) {
      if (room() == 0) close();
      const int end = std::min(n, begin + room());
      append({i, begin, end});
      begin = end;
    }
  }

  static bool same_frame(const Piece& a, const Piece& b) {
    return a.kind == PieceKind::kVisual && b.kind == PieceKind::kVisual && a.medium == b.medium &&
           a.layout.t == b.layout.t;
  }

  /// Tokens of the frame whose first unit is piece i; 0 where another one is.
  int64_t frame_tokens(int i) const {
    if (i > 0 && same_frame(piece(i - 1), piece(i))) return 0;
    int64_t n = 0;
    for (int j = i; j < static_cast<int>(prompt_.pieces().size()); ++j) {
      if (!same_frame(piece(i), piece(j))) break;
      n += piece(j).n_tokens();
    }
    return n;
  }

  void add_visual(int i) {
    const int n = piece(i).n_tokens();
    if (options_.whole_frames) {
      const int64_t n_frame = frame_tokens(i);
      if (n_frame > room() && n_frame <= options_.n_block) {
        close_before_unit(static_cast<int>(n_frame));
      }
    }
    if (n > room() && n <= options_.n_block) close_before_unit(n);
    if (n <= room()) {
      append({i, 0, n});
      return;
    }
    const int n_cols = piece(i).layout.n_grid_cols;
    for (int begin = 0; begin < n;) {
      const int left = n - begin;
      int take = std::min(left, room());
      // Whole grid rows, as long as one fits an empty block.
      if (take < left && n_cols <= options_.n_block) take -= take % n_cols;
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
          last.n_tokens() + n_unit <= options_.n_block) {
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
    n_done_ += n_tokens_;
    n_tokens_ = 0;
    n_block_ = next_block_size();
  }

  const PromptPlan& prompt_;
  const BlockOptions options_;
  int64_t n_done_ = 0;  // tokens in closed blocks
  int n_block_;         // limit of the current block
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

std::vector<BlockPlan> plan_blocks(const PromptPlan& prompt, const BlockOptions& options) {
  PLATEAU_CHECK(options.n_block >= 1);
  return Packer(prompt, options).pack();
}

}  // namespace plateau::engine

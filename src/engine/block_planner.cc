#include "engine/block_planner.h"

#include <algorithm>

#include "base/check.h"

namespace plateau::engine {
namespace {

class Packer {
 public:
  Packer(const PromptPlan& prompt, const BlockOptions& options)
      : pieces_(prompt.pieces()), options_(options), n_block_(next_block_size()) {}

  std::vector<BlockPlan> pack() {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const Piece piece = pieces_[i];
      if (piece.kind == PieceKind::kVisual) {
        add_visual(piece, i);
      } else {
        add_text(piece);
      }
    }
    close();
    return std::move(blocks_);
  }

 private:
  int room() const { return n_block_ - block_.n_tokens(); }

  /// The limit of the block that starts where block_ ends.
  int next_block_size() const {
    const int64_t left = std::min<int64_t>(options_.budget - block_.end, options_.n_bulk);
    return static_cast<int>(std::max<int64_t>(left, options_.n_block));
  }

  void add_text(const Piece& piece) {
    const int n = piece.n_tokens();
    for (int begin = 0; begin < n;) {
      if (room() == 0) close();
      const int end = std::min(n, begin + room());
      append(end - begin, piece.binds_next && end - begin == n);
      begin = end;
    }
  }

  static bool same_frame(const Piece& a, const Piece& b) {
    return a.kind == PieceKind::kVisual && b.kind == PieceKind::kVisual && a.medium == b.medium &&
           a.layout.t == b.layout.t;
  }

  /// Tokens of the frame whose first unit is piece i; 0 where another one is.
  int64_t frame_tokens(const Piece& piece, size_t i) const {
    if (i > 0 && same_frame(pieces_[i - 1], piece)) return 0;
    int64_t n = piece.n_tokens();
    for (size_t j = i + 1; j < pieces_.size(); ++j) {
      const Piece next = pieces_[j];
      if (!same_frame(piece, next)) break;
      n += next.n_tokens();
    }
    return n;
  }

  void add_visual(const Piece& piece, size_t i) {
    const int n = piece.n_tokens();
    if (options_.whole_frames) {
      const int64_t n_frame = frame_tokens(piece, i);
      if (n_frame > room() && n_frame <= options_.n_block) {
        close_before_unit(static_cast<int>(n_frame));
      }
    }
    if (n > room() && n <= options_.n_block) close_before_unit(n);
    if (n <= room()) {
      append(n);
      return;
    }
    const int n_cols = piece.layout.n_grid_cols;
    for (int left = n; left > 0;) {
      int take = std::min(left, room());
      // Whole grid rows, as long as one fits an empty block.
      if (take < left && n_cols <= options_.n_block) take -= take % n_cols;
      if (take == 0) {
        close();
        continue;
      }
      append(take);
      left -= take;
    }
  }

  /// Closes the block, but takes a binding piece at its end along into the next one.
  void close_before_unit(int n_unit) {
    const int n_carried =
        n_binding_ < block_.n_tokens() && n_binding_ + n_unit <= options_.n_block ? n_binding_ : 0;
    block_.end -= n_carried;
    close();
    append(n_carried);
  }

  /// `binds_next`: a whole piece that must not be parted from what follows.
  void append(int n, bool binds_next = false) {
    block_.end += n;
    n_binding_ = binds_next ? n : 0;
    PLATEAU_CHECK(block_.n_tokens() <= n_block_);
  }

  void close() {
    if (block_.n_tokens() > 0) blocks_.push_back(block_);
    block_.begin = block_.end;
    n_binding_ = 0;
    n_block_ = next_block_size();
  }

  const PromptPlan::Pieces pieces_;
  const BlockOptions options_;
  BlockPlan block_;    // the current one
  int n_block_;        // its limit
  int n_binding_ = 0;  // tokens at its end that bind what follows
  std::vector<BlockPlan> blocks_;
};

}  // namespace

std::vector<BlockPlan> plan_blocks(const PromptPlan& prompt, const BlockOptions& options) {
  PLATEAU_CHECK(options.n_block >= 1);
  return Packer(prompt, options).pack();
}

std::vector<PieceSlice> slices_of(const PromptPlan& prompt, const BlockPlan& block) {
  std::vector<PieceSlice> slices;
  if (block.n_tokens() == 0) return slices;
  size_t i = prompt.piece_of(block.begin);
  for (int64_t token = block.begin; token < block.end; ++i) {
    const Piece piece = prompt.pieces()[i];
    const int64_t end = std::min(block.end, piece.first_token + piece.n_tokens());
    slices.push_back({i, static_cast<int>(token - piece.first_token),
                      static_cast<int>(end - piece.first_token)});
    token = end;
  }
  return slices;
}

}  // namespace plateau::engine

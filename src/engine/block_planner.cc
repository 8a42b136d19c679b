#include "engine/block_planner.h"

#include <algorithm>

#include "base/check.h"

namespace plateau::engine {
namespace {

bool is_opening(const Piece& piece) { return piece.kind != PieceKind::kVisual && piece.binds_next; }

bool is_closing(const Piece& piece) {
  return (piece.kind == PieceKind::kMarker || piece.kind == PieceKind::kLabel) && !piece.binds_next;
}

bool same_frame(const Piece& a, const Piece& b) {
  return a.kind == PieceKind::kVisual && b.kind == PieceKind::kVisual && a.medium == b.medium &&
         a.layout.t == b.layout.t;
}

/// Tokens of the frame that begins with piece i, with what opens and closes it where i opens it; 0
/// where no frame begins there.
int64_t frame_tokens(const PromptPlan::Pieces& pieces, size_t i) {
  int64_t n = 0;
  size_t j = i;
  for (; j < pieces.size() && is_opening(pieces[j]); ++j) n += pieces[j].n_tokens();
  if (j == pieces.size() || pieces[j].kind != PieceKind::kVisual) return 0;
  const Piece first = pieces[j];
  if (j > 0 && same_frame(pieces[j - 1], first)) return 0;
  for (; j < pieces.size() && same_frame(first, pieces[j]); ++j) n += pieces[j].n_tokens();
  const bool is_closed = is_opening(pieces[i]) && j < pieces.size() && is_closing(pieces[j]);
  return is_closed ? n + pieces[j].n_tokens() : n;
}

class Packer {
 public:
  Packer(const PromptPlan& prompt, const BlockOptions& options)
      : pieces_(prompt.pieces()), options_(options), n_block_(next_block_size()) {}

  std::vector<BlockPlan> pack() {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const Piece piece = pieces_[i];
      if (options_.whole_frames) keep_whole(frame_tokens(pieces_, i));
      if (piece.kind == PieceKind::kVisual) {
        add_visual(piece);
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

  /// Where what comes next fits a block, but not this one, it starts the next one.
  void keep_whole(int64_t n) {
    if (n > room() && n <= options_.n_block) close_before_unit(static_cast<int>(n));
  }

  void add_visual(const Piece& piece) {
    const int n = piece.n_tokens();
    keep_whole(n);
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

int64_t largest_frame(const PromptPlan& prompt) {
  const PromptPlan::Pieces pieces = prompt.pieces();
  int64_t largest = 1;
  for (size_t i = 0; i < pieces.size(); ++i) largest = std::max(largest, frame_tokens(pieces, i));
  return largest;
}

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

#include "engine/block_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kv/draw.h"
#include "plateau/error.h"

namespace plateau::engine {

static bool operator==(const PieceSlice& a, const PieceSlice& b) {
  return a.piece == b.piece && a.begin == b.begin && a.end == b.end;
}
static void PrintTo(const PieceSlice& slice, std::ostream* out) {
  *out << slice.piece << "[" << slice.begin << ", " << slice.end << ")";
}

namespace {

using test::draw;
using testing::ElementsAre;

std::vector<model::Token> tokens(int n) {
  return std::vector<model::Token>(static_cast<size_t>(n), 7);
}

void add_tiles(PromptPlan& plan, int n, int n_rows, int n_cols) {
  const UnitLayout tile = {.n_grid_rows = n_rows, .n_grid_cols = n_cols};
  plan.add_medium({std::vector<UnitLayout>(static_cast<size_t>(n), tile)});
}

std::vector<int> sizes(const std::vector<BlockPlan>& blocks) {
  std::vector<int> result;
  for (const BlockPlan& block : blocks) result.push_back(block.n_tokens());
  return result;
}

TEST(BlockPlanner, TextFillsBlocks) {
  PromptPlan plan;
  plan.add_text(tokens(25));
  EXPECT_THAT(sizes(plan_blocks(plan, {.n_block = 10})), ElementsAre(10, 10, 5));
  EXPECT_THAT(sizes(plan_blocks(plan, {.n_block = 25})), ElementsAre(25));
  EXPECT_THAT(sizes(plan_blocks(plan, {.n_block = 1})), testing::SizeIs(25));
  EXPECT_THROW(plan_blocks(plan, {.n_block = 0}), Error);
  EXPECT_TRUE(plan_blocks(PromptPlan(), {.n_block = 5}).empty());
}

TEST(BlockPlanner, TilesAreNotCutWhereTheyFit) {
  PromptPlan plan;
  plan.add_text(tokens(3));
  add_tiles(plan, 3, 2, 2);
  plan.add_text(tokens(2));
  const auto blocks = plan_blocks(plan, {.n_block = 10});
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_THAT(slices_of(plan, blocks[0]), ElementsAre(PieceSlice{0, 0, 3}, PieceSlice{1, 0, 4}));
  EXPECT_THAT(slices_of(plan, blocks[1]),
              ElementsAre(PieceSlice{2, 0, 4}, PieceSlice{3, 0, 4}, PieceSlice{4, 0, 2}));
}

TEST(BlockPlanner, ALargeTileIsCutAtItsRows) {
  PromptPlan plan;
  plan.add_text(tokens(2));
  add_tiles(plan, 1, 5, 3);
  const auto blocks = plan_blocks(plan, {.n_block = 8});
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_THAT(slices_of(plan, blocks[0]), ElementsAre(PieceSlice{0, 0, 2}, PieceSlice{1, 0, 6}));
  EXPECT_THAT(slices_of(plan, blocks[1]), ElementsAre(PieceSlice{1, 6, 12}));
  EXPECT_THAT(slices_of(plan, blocks[2]), ElementsAre(PieceSlice{1, 12, 15}));
}

TEST(BlockPlanner, ARowThatDoesNotFitIsCutAnywhere) {
  PromptPlan plan;
  add_tiles(plan, 1, 2, 7);
  EXPECT_THAT(sizes(plan_blocks(plan, {.n_block = 4})), ElementsAre(4, 4, 4, 2));
}

TEST(BlockPlanner, AnOpeningMarkerGoesWithItsPicture) {
  PromptPlan plan;
  plan.add_text(tokens(5));
  plan.add_marker(tokens(1), /*binds_next=*/true);
  add_tiles(plan, 2, 2, 2);
  plan.add_marker(tokens(1), /*binds_next=*/false);
  const auto blocks = plan_blocks(plan, {.n_block = 8});
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_THAT(slices_of(plan, blocks[0]), ElementsAre(PieceSlice{0, 0, 5}));
  EXPECT_THAT(slices_of(plan, blocks[1]), ElementsAre(PieceSlice{1, 0, 1}, PieceSlice{2, 0, 4}));
  EXPECT_THAT(slices_of(plan, blocks[2]), ElementsAre(PieceSlice{3, 0, 4}, PieceSlice{4, 0, 1}));
  // Where both together do not fit a block, the marker stays where it is.
  EXPECT_THAT(sizes(plan_blocks(plan, {.n_block = 4})), ElementsAre(4, 2, 4, 4, 1));
}

// A picture in bands, a film in slices.
TEST(BlockPlanner, FramesAreNotCutWhereTheyFit) {
  PromptPlan plan;
  plan.add_text(tokens(5));
  plan.add_marker(tokens(1), /*binds_next=*/true);
  plan.add_medium(
      {{{.n_grid_rows = 2, .n_grid_cols = 2}, {.n_grid_rows = 1, .n_grid_cols = 2, .grid_h0 = 2}}});
  plan.add_medium({{{.n_grid_rows = 2, .n_grid_cols = 2},
                    {.n_grid_rows = 2, .n_grid_cols = 2, .plane = 1, .t = 1},
                    {.n_grid_rows = 2, .n_grid_cols = 2, .plane = 2, .t = 2}}});
  EXPECT_THAT(sizes(plan_blocks(plan, {.n_block = 10})), ElementsAre(10, 10, 4));
  EXPECT_THAT(sizes(plan_blocks(plan, {.n_block = 7, .whole_frames = true})),
              ElementsAre(5, 7, 4, 4, 4));
  EXPECT_THAT(sizes(plan_blocks(plan, {.n_block = 6, .whole_frames = true})),
              ElementsAre(6, 6, 4, 4, 4));
  EXPECT_THAT(sizes(plan_blocks(plan, {.n_block = 10, .whole_frames = true})),
              ElementsAre(5, 7, 8, 4));
  // A frame that does not fit a block is cut between its units.
  EXPECT_THAT(sizes(plan_blocks(plan, {.n_block = 5, .whole_frames = true})),
              ElementsAre(5, 5, 2, 4, 4, 4));
}

TEST(BlockPlanner, AFrameTakesWhatFramesItAlong) {
  PromptPlan plan;
  plan.add_text(tokens(5));
  plan.begin_medium();
  plan.add_labelled_slices({{.n_grid_rows = 2, .n_grid_cols = 2}},
                           {.tokens = tokens(3 + 3 + 4), .ends = {3, 6, 10}, .close = 7});
  plan.add_text(tokens(3));
  EXPECT_EQ(largest_frame(plan), 4 + 4 + 1);
  EXPECT_THAT(sizes(plan_blocks(plan, {.n_block = 9, .whole_frames = true})),
              ElementsAre(5, 8, 8, 9, 3));
  EXPECT_THAT(sizes(plan_blocks(plan, {.n_block = 12, .whole_frames = true})),
              ElementsAre(5, 8, 8, 12));
  // A label is cut for nothing but the lack of room.
  EXPECT_THAT(sizes(plan_blocks(plan, {.n_block = 8, .whole_frames = true})),
              ElementsAre(5, 8, 8, 8, 4));
  EXPECT_EQ(largest_frame(PromptPlan()), 1);
}

TEST(BlockPlanner, TheBulkStageUsesWhatFitsTheBudget) {
  PromptPlan plan;
  plan.add_text(tokens(4));
  add_tiles(plan, 20, 2, 2);
  EXPECT_THAT(sizes(plan_blocks(plan, {.n_block = 8, .n_bulk = 1000, .budget = 40})),
              ElementsAre(40, 8, 8, 8, 8, 8, 4));
  // A bulk block is capped by its own limit,
  EXPECT_THAT(sizes(plan_blocks(plan, {.n_block = 8, .n_bulk = 16, .budget = 40})),
              ElementsAre(16, 16, 8, 8, 8, 8, 8, 8, 4));
  // and never smaller than a block.
  EXPECT_THAT(sizes(plan_blocks(plan, {.n_block = 8, .n_bulk = 2, .budget = 40})),
              sizes(plan_blocks(plan, {.n_block = 8})));
}

/// Where a piece may be cut, by the header's rules.
void expect_legal_cuts(const PromptPlan& plan, const std::vector<BlockPlan>& blocks, int n_block) {
  for (const BlockPlan& block : blocks) {
    for (const PieceSlice& slice : slices_of(plan, block)) {
      const Piece piece = plan.pieces()[slice.piece];
      if (piece.kind != PieceKind::kVisual) continue;
      const bool is_whole = slice.begin == 0 && slice.end == piece.n_tokens();
      if (piece.n_tokens() <= n_block) {
        ASSERT_TRUE(is_whole) << testing::PrintToString(slice);
      } else if (piece.layout.n_grid_cols <= n_block) {
        ASSERT_EQ(slice.begin % piece.layout.n_grid_cols, 0) << testing::PrintToString(slice);
        ASSERT_EQ(slice.end % piece.layout.n_grid_cols, 0) << testing::PrintToString(slice);
      }
    }
  }
}

TEST(BlockPlanner, RandomPromptsComeOutInOrder) {
  test::Rng rng(1);
  for (int round = 0; round < 5000; ++round) {
    PromptPlan plan;
    for (int i = draw(rng, 1, 8); i > 0; --i) {
      switch (draw(rng, 0, 3)) {
        case 0:
          plan.add_text(tokens(draw(rng, 1, 30)));
          break;
        case 1:
          plan.add_marker(tokens(draw(rng, 1, 2)), draw(rng, 0, 1) == 1);
          break;
        default:
          add_tiles(plan, draw(rng, 1, 6), draw(rng, 1, 4), draw(rng, 1, 6));
      }
    }
    const BlockOptions options = {.n_block = draw(rng, 1, 40),
                                  .n_bulk = draw(rng, 0, 1) * draw(rng, 1, 100),
                                  .budget = draw(rng, 0, 200)};
    SCOPED_TRACE(testing::Message() << "round " << round << " block " << options.n_block << " bulk "
                                    << options.n_bulk << " budget " << options.budget);
    const std::vector<BlockPlan> blocks = plan_blocks(plan, options);

    // Concatenated, the slices are the prompt.
    size_t piece = 0;
    int next = 0;
    int64_t n_done = 0;
    for (const BlockPlan& block : blocks) {
      ASSERT_EQ(block.begin, n_done);
      ASSERT_GT(block.n_tokens(), 0);
      for (const PieceSlice& slice : slices_of(plan, block)) {
        ASSERT_EQ(slice.piece, piece);
        ASSERT_EQ(slice.begin, next);
        ASSERT_GT(slice.end, slice.begin);
        next = slice.end;
        if (next == plan.pieces()[piece].n_tokens()) {
          ++piece;
          next = 0;
        }
      }
      // No block is larger than its limit; the bulk stage never runs over the budget.
      const int64_t bulk = std::min<int64_t>(options.budget - n_done, options.n_bulk);
      ASSERT_LE(block.n_tokens(), std::max<int64_t>(options.n_block, bulk));
      n_done += block.n_tokens();
    }
    ASSERT_EQ(piece, plan.pieces().size());
    ASSERT_EQ(next, 0);
    ASSERT_EQ(n_done, plan.n_tokens());
    expect_legal_cuts(plan, blocks, options.n_block);

    // A marker that binds the next piece does not end a block, where there was another way.
    for (size_t i = 0; i + 1 < blocks.size(); ++i) {
      const std::vector<PieceSlice> slices = slices_of(plan, blocks[i]);
      const PieceSlice& last = slices.back();
      const Piece marker = plan.pieces()[last.piece];
      if (!marker.binds_next || last.end < marker.n_tokens()) continue;
      const Piece after = plan.pieces()[last.piece + 1];
      const bool could_go_along = last.begin == 0 && slices.size() > 1 &&
                                  after.kind == PieceKind::kVisual &&
                                  marker.n_tokens() + after.n_tokens() <= options.n_block;
      ASSERT_FALSE(could_go_along) << testing::PrintToString(last);
    }
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace plateau::engine

#include "engine/prompt_plan.h"

#include <gtest/gtest.h>

#include "plateau/error.h"

namespace plateau::engine {
namespace {

TEST(PromptPlan, StartsEmpty) {
  const PromptPlan plan;
  EXPECT_TRUE(plan.pieces().empty());
  EXPECT_EQ(plan.n_tokens(), 0);
  EXPECT_EQ(plan.next_position(), 0);
}

TEST(PromptPlan, PositionsFollowTheTokens) {
  PromptPlan plan;
  plan.add_text({11, 12, 13});
  plan.add_marker({1}, /*binds_next=*/true);
  plan.add_visual({.image = 0, .unit = 0, .n_grid_rows = 2, .n_grid_cols = 3, .plane = 0});
  plan.add_visual({.image = 0,
                   .unit = 1,
                   .n_grid_rows = 2,
                   .n_grid_cols = 3,
                   .plane = 1,
                   .grid_h0 = 2,
                   .grid_w0 = 3});
  plan.add_marker({2}, /*binds_next=*/false);
  plan.add_text({14, 15});
  ASSERT_EQ(plan.pieces().size(), 6U);
  EXPECT_EQ(plan.n_tokens(), 3 + 1 + 6 + 6 + 1 + 2);
  EXPECT_EQ(plan.n_visual_tokens(), 12);
  EXPECT_EQ(plan.n_text_tokens(), 7);
  EXPECT_EQ(plan.n_visual_units(), 2);
  EXPECT_EQ(plan.next_position(), plan.n_tokens());
  int32_t next = 0;
  for (const Piece& piece : plan.pieces()) {
    EXPECT_EQ(piece.first_position, next);
    for (int i = 0; i < piece.n_tokens(); ++i) EXPECT_EQ(plan.position(piece, i), next++);
  }
  EXPECT_EQ(plan.pieces()[0].kind, PieceKind::kText);
  EXPECT_EQ(plan.pieces()[1].kind, PieceKind::kMarker);
  EXPECT_TRUE(plan.pieces()[1].binds_next);
  const Piece& tile = plan.pieces()[3];
  EXPECT_EQ(tile.kind, PieceKind::kVisual);
  EXPECT_EQ(tile.unit, 1);
  EXPECT_EQ(tile.plane, 1);
  EXPECT_EQ(tile.grid_h0, 2);
  EXPECT_EQ(tile.grid_w0, 3);
}

TEST(PromptPlan, EmptyPiecesAreLeftOut) {
  PromptPlan plan;
  plan.add_text({});
  plan.add_marker({}, /*binds_next=*/true);
  plan.add_text({5});
  EXPECT_EQ(plan.pieces().size(), 1U);
  EXPECT_EQ(plan.pieces()[0].first_position, 0);
}

TEST(PromptPlan, APictureWithoutTokensIsABug) {
  PromptPlan plan;
  EXPECT_THROW(plan.add_visual({.n_grid_rows = 0, .n_grid_cols = 3}), Error);
  EXPECT_THROW(plan.add_visual({.n_grid_rows = 3, .n_grid_cols = -1}), Error);
}

}  // namespace
}  // namespace plateau::engine

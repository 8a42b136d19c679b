#include "engine/prompt_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <tuple>
#include <vector>

#include "kv/draw.h"
#include "plateau/error.h"

namespace plateau::kv {
static void PrintTo(const Position& p, std::ostream* out) {
  *out << "(" << p.t << ", " << p.h << ", " << p.w << ")";
}
}  // namespace plateau::kv

namespace plateau::engine {
namespace {

using kv::Position;
using test::draw;

std::vector<Position> positions_of(const PromptPlan& plan, const Piece& piece) {
  std::vector<Position> result;
  for (int i = 0; i < piece.n_tokens(); ++i) result.push_back(plan.position(piece, i));
  return result;
}

std::vector<Position> positions_of(const PromptPlan& plan) {
  std::vector<Position> result;
  for (const Piece& piece : plan.pieces()) {
    for (const Position& position : positions_of(plan, piece)) result.push_back(position);
  }
  return result;
}

TEST(PromptPlan, StartsEmpty) {
  const PromptPlan plan;
  EXPECT_TRUE(plan.pieces().empty());
  EXPECT_TRUE(plan.own_planes().empty());
  EXPECT_EQ(plan.n_tokens(), 0);
  EXPECT_EQ(plan.next_position(), 0);
}

TEST(PromptPlan, PositionsFollowTheTokens) {
  PromptPlan plan;
  plan.add_text({11, 12, 13});
  plan.add_marker({1}, /*binds_next=*/true);
  plan.add_medium(
      {{{.n_grid_rows = 2, .n_grid_cols = 3},
        {.n_grid_rows = 2, .n_grid_cols = 3, .grid_h0 = 2, .grid_w0 = 3, .plane = 1, .t = 4}}});
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
    for (int i = 0; i < piece.n_tokens(); ++i) {
      EXPECT_EQ(plan.position(piece, i), Position::sequential(next++));
    }
  }
  EXPECT_EQ(plan.pieces()[0].kind, PieceKind::kText);
  EXPECT_EQ(plan.pieces()[1].kind, PieceKind::kMarker);
  EXPECT_TRUE(plan.pieces()[1].binds_next);
  const Piece& tile = plan.pieces()[3];
  EXPECT_EQ(tile.kind, PieceKind::kVisual);
  EXPECT_EQ(tile.medium, 0);
  EXPECT_EQ(tile.unit, 1);
  EXPECT_EQ(tile.layout.plane, 1);
  EXPECT_EQ(tile.layout.grid_h0, 2);
  EXPECT_EQ(tile.layout.grid_w0, 3);
}

TEST(PromptPlan, PlanesAreNumberedThroughThePrompt) {
  PromptPlan plan;
  plan.add_medium({{{.plane = 0}, {.plane = 1}, {.plane = 2}}});  // a film of three slices
  plan.add_medium({{{.plane = 0}}});                              // a picture
  plan.add_medium({{{.plane = 0}, {.plane = 0}, {.plane = 1}}});  // tiles and a thumbnail
  std::vector<std::pair<int, int>> planes;
  for (const Piece& piece : plan.pieces()) planes.emplace_back(piece.medium, piece.layout.plane);
  EXPECT_EQ(planes, (std::vector<std::pair<int, int>>{
                        {0, 0}, {0, 1}, {0, 2}, {1, 3}, {2, 4}, {2, 4}, {2, 5}}));
  EXPECT_THAT(plan.own_planes(), testing::ElementsAre(0, 3, 4));
}

TEST(PromptPlan, EmptyPiecesAreLeftOut) {
  PromptPlan plan;
  plan.add_text({});
  plan.add_marker({}, /*binds_next=*/true);
  plan.add_text({5});
  EXPECT_EQ(plan.pieces().size(), 1U);
  EXPECT_EQ(plan.pieces()[0].first_position, 0);
}

TEST(PromptPlan, AMediumWithoutTokensIsABug) {
  for (const UnitLayout unit :
       {UnitLayout{.n_grid_rows = 0}, UnitLayout{.n_grid_cols = -1}, UnitLayout{.grid_h0 = -1},
        UnitLayout{.grid_w0 = -1}, UnitLayout{.plane = -1}}) {
    PromptPlan plan;
    EXPECT_THROW(plan.add_medium({{unit}}), Error);
  }
  EXPECT_THROW(PromptPlan().add_medium({}), Error);
  EXPECT_THROW(PromptPlan().add_medium({{{.t = 1}, {.t = 0}}}), Error);     // back in time
  EXPECT_THROW(PromptPlan().add_units(std::vector<UnitLayout>(1)), Error);  // of what?
  PromptPlan plan;
  plan.begin_medium();
  EXPECT_THROW(plan.add_slices({}, {0}), Error);
  EXPECT_THROW(plan.add_slices({{}}, {}), Error);
  EXPECT_THROW(plan.add_slices({{}}, {1, 0}), Error);
  EXPECT_THROW(plan.add_labelled_slices({{}}, {}), Error);
}

// By hand, from the rule: t stands still in a picture, text goes on behind its longer side.
TEST(MultimodalPositions, OfAPictureAndTheTextAroundIt) {
  PromptPlan plan(PositionRule::kMultimodal);
  plan.add_text({11, 12});
  plan.add_medium({{{.n_grid_rows = 2, .n_grid_cols = 3}}});
  plan.add_text({13, 14});
  EXPECT_THAT(positions_of(plan),
              testing::ElementsAre(Position{0, 0, 0}, Position{1, 1, 1},  //
                                   Position{2, 2, 2}, Position{2, 2, 3}, Position{2, 2, 4},
                                   Position{2, 3, 2}, Position{2, 3, 3}, Position{2, 3, 4},
                                   Position{5, 5, 5}, Position{6, 6, 6}));
  EXPECT_EQ(plan.next_position(), 7);
}

TEST(MultimodalPositions, OfAFilmOfTwoSlices) {
  PromptPlan plan(PositionRule::kMultimodal);
  plan.add_text({11});
  plan.add_medium({{{.n_grid_rows = 2, .n_grid_cols = 1},
                    {.n_grid_rows = 2, .n_grid_cols = 1, .plane = 1, .t = 5}}});
  plan.add_text({12});
  EXPECT_THAT(positions_of(plan), testing::ElementsAre(Position{0, 0, 0},                     //
                                                       Position{1, 1, 1}, Position{1, 2, 1},  //
                                                       Position{6, 1, 1}, Position{6, 2, 1},  //
                                                       Position{7, 7, 7}));
}

// As a row of labelled pictures, each with a start of its own.
TEST(MultimodalPositions, OfAFilmOfLabelledPictures) {
  PromptPlan plan(PositionRule::kMultimodal);
  plan.begin_medium();
  plan.add_labelled_slices({{.n_grid_rows = 1, .n_grid_cols = 2}},
                           {.tokens = {7, 8, 8}, .ends = {1, 3}, .close = 9});
  EXPECT_THAT(positions_of(plan),
              testing::ElementsAre(Position{0, 0, 0}, Position{1, 1, 1}, Position{1, 1, 2},
                                   Position{3, 3, 3}, Position{4, 4, 4}, Position{5, 5, 5},
                                   Position{6, 6, 6}, Position{6, 6, 7}, Position{8, 8, 8}));
  EXPECT_EQ(plan.next_position(), 9);
  EXPECT_EQ(plan.pieces()[4].medium, 0);
  EXPECT_EQ(plan.pieces()[4].unit, 1);
  EXPECT_EQ(plan.pieces()[4].layout.plane, 1);
}

/// What a piece says of itself, so that two plans can be compared.
auto said(const PromptPlan& plan, const Piece& piece) {
  return std::tuple(piece.kind, piece.binds_next, piece.medium, piece.unit, piece.layout.plane,
                    piece.layout.t, piece.first_token,
                    std::vector<model::Token>(piece.tokens.begin(), piece.tokens.end()),
                    positions_of(plan, piece));
}

// Slices are worked out when asked: the same as every piece laid down by itself.
TEST(PromptPlan, SlicesAreAsTheirPiecesOneByOne) {
  test::Rng rng(11);
  for (int round = 0; round < 400; ++round) {
    const PositionRule rule =
        draw(rng, 0, 1) == 1 ? PositionRule::kMultimodal : PositionRule::kSequential;
    const bool labelled = draw(rng, 0, 1) == 1;
    PromptPlan slices(rule), pieces(rule);
    for (PromptPlan* plan : {&slices, &pieces}) {
      plan->add_text({1, 2, 3});
      plan->add_medium({{{.n_grid_rows = 2, .n_grid_cols = 2}, {.plane = 1}}});
      plan->begin_medium();
    }
    std::vector<UnitLayout> units;
    for (int i = draw(rng, 1, 3); i > 0; --i) {
      units.push_back({.n_grid_rows = draw(rng, 1, 3),
                       .n_grid_cols = draw(rng, 1, 3),
                       .grid_h0 = draw(rng, 0, 2),
                       .plane = draw(rng, 0, 1)});
    }
    units.front().plane = 0;
    int n_planes = 1;
    for (const UnitLayout& unit : units) n_planes = std::max(n_planes, unit.plane + 1);
    std::vector<int32_t> t;
    SliceText text = {.tokens = {}, .ends = {}, .close = 50};
    std::vector<UnitLayout> all;
    const int n_slices = draw(rng, 1, 9);
    for (int slice = 0; slice < n_slices; ++slice) {
      t.push_back(slice == 0 ? draw(rng, 0, 3) : t.back() + draw(rng, 0, 4));
      std::vector<UnitLayout> of_slice = units;
      for (UnitLayout& unit : of_slice) {
        unit.plane += slice * n_planes;
        unit.t = labelled ? 0 : t.back();
      }
      if (!labelled) {
        all.insert(all.end(), of_slice.begin(), of_slice.end());
        continue;
      }
      const std::vector<model::Token> label(static_cast<size_t>(draw(rng, 1, 4)), 10 + slice);
      text.tokens.insert(text.tokens.end(), label.begin(), label.end());
      text.ends.push_back(static_cast<uint32_t>(text.tokens.size()));
      pieces.add_label(label, /*binds_next=*/true);
      pieces.add_units(of_slice);
      pieces.add_label({50}, /*binds_next=*/false);
    }
    if (labelled) {
      slices.add_labelled_slices(units, text);
    } else {
      slices.add_slices(units, t);
      pieces.add_units(all);
    }
    for (PromptPlan* plan : {&slices, &pieces}) {
      plan->add_medium({{{.n_grid_rows = 1, .n_grid_cols = 3}}});
      plan->add_text({4, 5});
    }
    SCOPED_TRACE(testing::Message() << "round " << round);
    ASSERT_EQ(slices.pieces().size(), pieces.pieces().size());
    for (size_t i = 0; i < pieces.pieces().size(); ++i) {
      ASSERT_EQ(said(slices, slices.pieces()[i]), said(pieces, pieces.pieces()[i])) << i;
    }
    ASSERT_EQ(slices.n_tokens(), pieces.n_tokens());
    ASSERT_EQ(slices.n_visual_tokens(), pieces.n_visual_tokens());
    ASSERT_EQ(slices.n_visual_units(), pieces.n_visual_units());
    ASSERT_EQ(slices.next_position(), pieces.next_position());
    ASSERT_EQ(slices.own_planes(), pieces.own_planes());
    size_t piece = 0;
    for (int64_t token = 0; token < slices.n_tokens(); ++token) {
      while (piece + 1 < slices.pieces().size() &&
             slices.pieces()[piece + 1].first_token <= token) {
        ++piece;
      }
      ASSERT_EQ(slices.piece_of(token), piece) << token;
    }
  }
}

TEST(MultimodalPositions, APictureTakesItsLongerSide) {
  for (const auto& [rows, cols] :
       {std::pair(1, 1), std::pair(1, 9), std::pair(9, 1), std::pair(28, 28), std::pair(40, 90)}) {
    PromptPlan plan(PositionRule::kMultimodal);
    plan.add_text({1, 2, 3});
    plan.add_medium({{{.n_grid_rows = rows, .n_grid_cols = cols}}});
    EXPECT_EQ(plan.next_position(), 3 + std::max(rows, cols));
  }
}

// One picture as one unit, or as bands of whole rows: the same positions.
TEST(MultimodalPositions, DoNotDependOnTheCutIntoBands) {
  test::Rng rng(5);
  for (int round = 0; round < 200; ++round) {
    const int rows = draw(rng, 1, 12), cols = draw(rng, 1, 12), t = draw(rng, 0, 3);
    PromptPlan whole(PositionRule::kMultimodal), banded(PositionRule::kMultimodal);
    VisualLayout bands;
    for (int h = 0; h < rows;) {
      const int n = draw(rng, 1, rows - h);
      bands.units.push_back({.n_grid_rows = n, .n_grid_cols = cols, .grid_h0 = h, .t = t});
      h += n;
    }
    const auto lay_out = [&](PromptPlan& plan, const VisualLayout& layout) {
      plan.add_text({1, 2});
      plan.add_medium(layout);
      plan.add_text({3});
    };
    lay_out(whole, {{{.n_grid_rows = rows, .n_grid_cols = cols, .t = t}}});
    lay_out(banded, bands);
    ASSERT_EQ(positions_of(banded), positions_of(whole));
  }
}

// Every token of a prompt of pictures and films has a position of its own.
TEST(MultimodalPositions, AreDistinct) {
  PromptPlan plan(PositionRule::kMultimodal);
  plan.add_text({1});
  plan.add_medium({{{.n_grid_rows = 7, .n_grid_cols = 2}}});
  plan.add_medium({{{.n_grid_rows = 3, .n_grid_cols = 4},
                    {.n_grid_rows = 3, .n_grid_cols = 4, .plane = 1, .t = 2},
                    {.n_grid_rows = 3, .n_grid_cols = 4, .plane = 2, .t = 4}}});
  plan.add_text({1, 2, 3});
  std::set<std::tuple<int, int, int>> seen;
  for (const Position& p : positions_of(plan)) EXPECT_TRUE(seen.emplace(p.t, p.h, p.w).second);
}

}  // namespace
}  // namespace plateau::engine

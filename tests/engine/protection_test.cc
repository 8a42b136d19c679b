#include "engine/protection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace plateau::engine {
namespace {

std::vector<model::Token> tokens(int n) {
  return std::vector<model::Token>(static_cast<size_t>(n), 7);
}

/// n_before of text, a picture of 2 x 2 tiles of 2 x 3 tokens and a thumbnail, n_after of text.
PromptPlan with_picture(int n_before, int n_after) {
  PromptPlan plan;
  plan.add_text(tokens(n_before));
  plan.add_marker(tokens(1), /*binds_next=*/true);
  VisualLayout picture;
  for (int tile = 0; tile < 4; ++tile) {
    picture.units.push_back(
        {.n_grid_rows = 2, .n_grid_cols = 3, .grid_h0 = tile / 2 * 2, .grid_w0 = tile % 2 * 3});
  }
  picture.units.push_back({.n_grid_rows = 2, .n_grid_cols = 3, .plane = 1});
  plan.add_medium(picture);
  plan.add_marker(tokens(1), /*binds_next=*/false);
  plan.add_text(tokens(n_after));
  return plan;
}

std::vector<int> protected_tokens(const PromptPlan& plan, const Protection& protection) {
  const PromptTokens table(plan, protection);
  std::vector<int> result;
  for (int token = 0; token < table.size(); ++token) {
    if (table.at(token).is_protected) result.push_back(token);
  }
  return result;
}

TEST(Protection, TextAndMarkersStay) {
  const PromptPlan plan = with_picture(6, 5);
  const Protection protection = protect(plan, /*budget=*/100, /*n_window=*/4);
  EXPECT_THAT(protected_tokens(plan, protection),
              testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 37, 38, 39, 40, 41, 42));
  EXPECT_EQ(protection.n_protected, 13);
  EXPECT_EQ(protection.n_evictable_text, 0);
}

// A film may have any number of labels.
TEST(Protection, LabelsOfAFilmMayGo) {
  PromptPlan plan;
  plan.add_text(tokens(5));
  plan.begin_medium();
  plan.add_labelled_slices({{.n_grid_rows = 1, .n_grid_cols = 2}},
                           {.tokens = tokens(6), .ends = {2, 4, 6}, .close = 7});
  plan.add_text(tokens(2));
  EXPECT_THAT(protected_tokens(plan, protect(plan, 100, 4)),
              testing::ElementsAre(0, 1, 2, 3, 4, 20, 21));
}

TEST(Protection, TheFirstTokensStayWhateverTheyAre) {
  const PromptPlan picture_first = with_picture(0, 1);
  EXPECT_THAT(protected_tokens(picture_first, protect(picture_first, 100, 4)),
              testing::ElementsAre(0, 1, 2, 3, 31, 32));
  const PromptPlan picture_last = with_picture(2, 0);
  EXPECT_THAT(protected_tokens(picture_last, protect(picture_last, 100, 4)),
              testing::ElementsAre(0, 1, 2, 3, 33));
}

// The oldest text beyond half the budget competes with the rest, except the sinks.
TEST(Protection, LongTextKeepsItsLatestHalfBudget) {
  const PromptPlan plan = with_picture(30, 10);
  const Protection protection = protect(plan, /*budget=*/40, /*n_window=*/4);
  EXPECT_EQ(protection.n_evictable_text, 20);
  std::vector<int> want = {0, 1, 2, 3};                             // sinks
  for (int token = 20; token < 31; ++token) want.push_back(token);  // text and opening marker
  for (int token = 61; token < 72; ++token) want.push_back(token);
  EXPECT_EQ(protected_tokens(plan, protection), want);
  EXPECT_EQ(protection.n_protected, static_cast<int>(want.size()));
}

TEST(Protection, TheWindowIsTheLeastThatStays) {
  const Protection protection = protect(with_picture(30, 10), /*budget=*/8, /*n_window=*/16);
  EXPECT_EQ(protection.n_evictable_text, 40 - 16);
}

TEST(Protection, WithoutABudgetNothingNeedsIt) {
  const PromptPlan plan = with_picture(30, 10);
  const Protection protection = protect(plan, /*budget=*/0, /*n_window=*/16);
  EXPECT_EQ(protection.n_protected, 0);
  EXPECT_EQ(protection.n_evictable_text, 0);
  EXPECT_TRUE(protected_tokens(plan, protection).empty());
}

// Coordinates of the whole picture, not of the tile; the thumbnail has its own plane.
TEST(Protection, TokensKnowTheirPlaceOnTheGrid) {
  const PromptPlan plan = with_picture(6, 5);
  const PromptTokens table(plan, protect(plan, 100, 4));
  ASSERT_EQ(table.size(), plan.n_tokens());
  for (int i = 0; i < table.size(); ++i) {
    EXPECT_EQ(table.at(i).position, kv::Position::sequential(i));
  }
  const auto expect_at = [&](int token, int plane, int h, int w) {
    EXPECT_EQ(table.at(token).medium, plane < 0 ? -1 : 0) << token;
    EXPECT_EQ(table.at(token).plane, plane) << token;
    EXPECT_EQ(table.at(token).h, h) << token;
    EXPECT_EQ(table.at(token).w, w) << token;
  };
  expect_at(0, -1, 0, 0);
  expect_at(6, -1, 0, 0);          // marker
  expect_at(7, 0, 0, 0);           // first tile
  expect_at(7 + 4, 0, 1, 1);       // its second row
  expect_at(7 + 6, 0, 0, 3);       // second tile: to the right
  expect_at(7 + 12 + 5, 0, 3, 2);  // third tile: below
  expect_at(7 + 18 + 5, 0, 3, 5);  // fourth tile
  expect_at(7 + 24 + 5, 1, 1, 2);  // thumbnail
  expect_at(37, -1, 0, 0);
}

}  // namespace
}  // namespace plateau::engine

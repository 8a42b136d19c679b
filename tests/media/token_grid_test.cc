#include "media/token_grid.h"

#include <gtest/gtest.h>

#include <utility>

#include "media/image.h"
#include "plateau/error.h"

namespace plateau::media {
namespace {

std::pair<int, int> rows_cols(int64_t width, int64_t height, const TokenGridOptions& options = {}) {
  const TokenGrid grid = plan_token_grid(width, height, options);
  EXPECT_EQ(grid.width(), int64_t{grid.n_cols} * options.token_size);
  EXPECT_EQ(grid.height(), int64_t{grid.n_rows} * options.token_size);
  return {grid.n_rows, grid.n_cols};
}

using Grid = std::pair<int, int>;

TEST(TokenGrid, EachSideIsRoundedToWholeTokens) {
  EXPECT_EQ(rows_cols(28, 28), Grid(1, 1));
  EXPECT_EQ(rows_cols(1, 1), Grid(1, 1));
  EXPECT_EQ(rows_cols(41, 42), Grid(2, 1));  // halves up
  EXPECT_EQ(rows_cols(27, 257), Grid(9, 1));
  EXPECT_EQ(rows_cols(5000, 1), Grid(1, 179));
  EXPECT_EQ(rows_cols(3840, 2160), Grid(77, 137));
  EXPECT_EQ(rows_cols(8660, 5774), Grid(206, 309));
}

// Values of the family's smart_resize with factor 28, min_pixels 56 * 56, max_pixels 1280 * 28
// * 28.
TEST(TokenGrid, KeepsToThePublishedRuleBetweenTheLimits) {
  const TokenGridOptions limits = {.min_pixels = 56 * 56, .max_tokens = 1280};
  EXPECT_EQ(rows_cols(1, 1, limits), Grid(2, 2));
  EXPECT_EQ(rows_cols(10, 40, limits), Grid(4, 1));
  EXPECT_EQ(rows_cols(640, 480, limits), Grid(17, 23));
  EXPECT_EQ(rows_cols(1920, 1080, limits), Grid(26, 47));
  EXPECT_EQ(rows_cols(4000, 3000, limits), Grid(30, 41));
}

TEST(TokenGrid, TheCapAlwaysHolds) {
  for (const int64_t width : {1, 27, 300, 5000, 200000}) {
    for (const int64_t height : {1, 28, 257, 4000, 199999}) {
      for (const int64_t cap : {1, 2, 3, 7, 64, 1000}) {
        const TokenGrid grid =
            plan_token_grid(width, height, {.min_pixels = 56 * 56, .max_tokens = cap});
        EXPECT_GE(grid.n_tokens(), 1);
        EXPECT_LE(grid.n_tokens(), cap) << width << " x " << height;
      }
    }
  }
}

TEST(TokenGrid, ASmallPictureReachesTheLeastSize) {
  for (const int64_t width : {1, 27, 55, 300}) {
    for (const int64_t height : {1, 14, 56, 500}) {
      const TokenGrid grid = plan_token_grid(width, height, {.min_pixels = 200'000});
      EXPECT_GE(grid.width() * grid.height(), 200'000) << width << " x " << height;
    }
  }
}

TEST(TokenGrid, AnAbsurdSizeIsRefused) {
  EXPECT_THROW(plan_token_grid(0, 5, {}), Error);
  EXPECT_THROW(plan_token_grid(5, -1, {}), Error);
  EXPECT_THROW(plan_token_grid(kMaxImageSide + 1, 5, {}), Error);
  EXPECT_THROW(plan_token_grid(5, 5, {.token_size = 0}), Error);
  EXPECT_THROW(plan_token_grid(5, 5, {.max_tokens = -1}), Error);
}

}  // namespace
}  // namespace plateau::media

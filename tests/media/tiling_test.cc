#include "media/tiling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "plateau/error.h"

namespace plateau::media {
namespace {

TileGrid plan(int64_t width, int64_t height, int tile_size, int max_tiles = 0, int min_tiles = 1) {
  TilingOptions options;
  options.tile_size = tile_size;
  options.max_tiles = max_tiles;
  options.min_tiles = min_tiles;
  return plan_tiles(width, height, options);
}

std::pair<int, int> cut(const TileGrid& grid) { return {grid.n_cols, grid.n_rows}; }

// dynamic_preprocess() of InternVL, step by step: list, sort by count, scan.
std::pair<int, int> internvl_cut(int width, int height, int tile, int min, int max) {
  std::vector<std::pair<int, int>> grids;
  for (int i = 1; i <= max; ++i) {
    for (int j = 1; j <= max; ++j) {
      if (i * j >= min && i * j <= max) grids.emplace_back(i, j);
    }
  }
  std::stable_sort(grids.begin(), grids.end(), [](const auto& a, const auto& b) {
    return a.first * a.second < b.first * b.second;
  });
  const double aspect = static_cast<double>(width) / height;
  double best_difference = INFINITY;
  std::pair<int, int> best{1, 1};
  for (const auto& [i, j] : grids) {
    const double difference = std::abs(aspect - static_cast<double>(i) / j);
    if (difference < best_difference) {
      best_difference = difference;
      best = {i, j};
    } else if (difference == best_difference &&
               static_cast<double>(width) * height > 0.5 * tile * tile * i * j) {
      best = {i, j};
    }
  }
  return best;
}

TEST(PlanTiles, NativeDetailOfKnownSizes) {
  EXPECT_EQ(cut(plan(3840, 2160, 112)), std::pair(34, 19));
  EXPECT_EQ(cut(plan(7680, 4320, 112)), std::pair(68, 38));
  EXPECT_EQ(cut(plan(448, 448, 448)), std::pair(1, 1));
  EXPECT_EQ(cut(plan(1, 5000, 448)), std::pair(1, 11));
  EXPECT_EQ(cut(plan(6000, 29, 448)), std::pair(14, 1));
}

TEST(PlanTiles, NativeDetailIsTheFewestTilesThatKeep98Percent) {
  for (const int tile : {28, 112, 448}) {
    for (int64_t side = 1; side < 5000; side += 7) {
      const int n = plan(side, 10, tile).n_cols;
      EXPECT_GE(100 * int64_t{n} * tile, 98 * side) << side;
      if (n > 1) {
        EXPECT_LT(100 * int64_t{n - 1} * tile, 98 * side) << side;
      }
    }
  }
}

TEST(PlanTiles, CapFollowsInternVl) {
  for (const int max : {1, 2, 6, 12, 40}) {
    for (int width = 30; width < 6000; width = width * 5 / 4 + 1) {
      for (int height = 30; height < 6000; height = height * 4 / 3 + 1) {
        const std::pair<int, int> native = cut(plan(width, height, 448));
        if (native.first * native.second <= max) continue;
        EXPECT_EQ(cut(plan(width, height, 448, max)), internvl_cut(width, height, 448, 1, max))
            << width << " x " << height << ", at most " << max;
      }
    }
  }
}

TEST(PlanTiles, TieTakesTheLargerGridOnlyWhenThePictureFillsHalfOfIt) {
  // Aspect 1: 1x1, 2x2 and 3x3 are equally near. Native detail at 112 would need 10 x 10 tiles.
  EXPECT_EQ(cut(plan(1000, 1000, 112, 12)), std::pair(3, 3));
  // 600 x 600 needs 2 x 2 tiles of 448; with at most 3 the only grid of that shape is 1 x 1.
  EXPECT_EQ(cut(plan(600, 600, 448, 3)), std::pair(1, 1));
  // 900 x 10: 2.0 tiles wide, aspect far from all; the widest grid is nearest.
  EXPECT_EQ(cut(plan(9000, 10, 448, 6)), std::pair(6, 1));
}

TEST(PlanTiles, CapDoesNothingWhereNativeDetailFits) {
  EXPECT_EQ(cut(plan(800, 400, 448, 12)), std::pair(2, 1));
  EXPECT_EQ(cut(plan(100, 100, 448, 12)), std::pair(1, 1));
}

TEST(PlanTiles, MinimumAddsTilesWhereTheyAreCoarsest) {
  EXPECT_EQ(cut(plan(100, 50, 448, 0, 2)), std::pair(2, 1));
  EXPECT_EQ(cut(plan(50, 100, 448, 0, 2)), std::pair(1, 2));
  EXPECT_EQ(cut(plan(100, 100, 448, 0, 4)), std::pair(2, 2));
  for (int min = 1; min < 30; ++min) EXPECT_GE(plan(640, 480, 448, 0, min).n_tiles(), min);
  // 2 x 1 would overshoot nothing, 3 by growth would be 3 x 1 or 2 x 2: the cap decides.
  EXPECT_EQ(plan(100, 100, 448, 3, 3).n_cols * plan(100, 100, 448, 3, 3).n_rows, 3);
}

TEST(PlanTiles, ThumbnailOnlyBesideSeveralTiles) {
  EXPECT_FALSE(plan(100, 100, 448).thumbnail);
  EXPECT_TRUE(plan(1000, 100, 448).thumbnail);
  EXPECT_EQ(plan(1000, 100, 448).n_tiles(), 4);
  TilingOptions options;
  options.thumbnail = false;
  EXPECT_FALSE(plan_tiles(1000, 100, options).thumbnail);
}

ErrorCode code_of(int64_t width, int64_t height, const TilingOptions& options) {
  try {
    plan_tiles(width, height, options);
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "expected an error";
  return ErrorCode::kInternal;
}

TEST(PlanTiles, AbsurdInputIsAnErrorNotAnOverflow) {
  TilingOptions options;
  EXPECT_EQ(code_of(0, 10, options), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(10, -1, options), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(INT64_MAX, 10, options), ErrorCode::kInvalidArgument);
  options.tile_size = 1;
  EXPECT_EQ(code_of(1'000'000, 1'000'000, options), ErrorCode::kResourceExhausted);
  options.max_tiles = 12;
  EXPECT_LE(plan_tiles(1'000'000, 1'000'000, options).n_tiles(), 13);
  for (const auto& [tile, min, max] :
       {std::tuple(0, 1, 0), {-1, 1, 0}, {448, 0, 0}, {448, 1, -1}, {448, 5, 4}}) {
    options.tile_size = tile;
    options.min_tiles = min;
    options.max_tiles = max;
    EXPECT_EQ(code_of(10, 10, options), ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace plateau::media

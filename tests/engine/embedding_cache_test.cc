#include "engine/embedding_cache.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temp_dir.h"

namespace plateau::test {
namespace {

constexpr size_t kUnitFloats = 6;

std::vector<engine::PlannedImage> planned(const std::vector<std::string>& paths, int n_cols) {
  std::vector<engine::PlannedImage> images;
  for (const std::string& path : paths) {
    engine::PlannedImage image;
    image.path = path;
    image.cut = media::plan_tiles(112 * n_cols, 112, {.tile_size = 112, .thumbnail = false});
    images.push_back(image);
  }
  return images;
}

/// Unit u of picture i is full of 100 i + u; counts what it is asked for.
class CountingSource final : public engine::UnitSource {
 public:
  std::span<const float> unit(int image, int unit) override {
    ++n_asked;
    floats_.assign(kUnitFloats, static_cast<float>(100 * image + unit));
    return floats_;
  }
  int n_asked = 0;

 private:
  std::vector<float> floats_;
};

class CachedSourceTest : public testing::Test {
 protected:
  CachedSourceTest() {
    for (const char* name : {"a", "b"}) std::ofstream(dir_.file(name)) << name;
  }
  /// One request over all units. Returns how many the source had to make.
  int run(engine::EmbeddingCache& cache, const std::vector<engine::PlannedImage>& images) {
    CountingSource source;
    engine::CachedSource cached(cache, source, images);
    for (int image = 0; image < static_cast<int>(images.size()); ++image) {
      const int n_units = images[static_cast<size_t>(image)].n_units();
      for (int unit = 0; unit < n_units; ++unit) {
        // A unit that two blocks share is asked for twice.
        for (int again = 0; again < 1 + unit % 2; ++again) {
          const auto got = cached.unit(image, unit);
          EXPECT_EQ(got.size(), kUnitFloats);
          EXPECT_EQ(got[0], static_cast<float>(100 * image + unit));
          EXPECT_EQ(got[kUnitFloats - 1], got[0]);
        }
      }
    }
    return source.n_asked;
  }
  TempDir dir_;
};

TEST_F(CachedSourceTest, ASecondRequestEncodesNothing) {
  engine::EmbeddingCache cache(1 << 20);
  const auto images = planned({dir_.file("a"), dir_.file("b")}, 4);
  EXPECT_EQ(run(cache, images), 12);  // 4 units each, two of them twice
  EXPECT_EQ(cache.n_bytes(), static_cast<int64_t>(8 * kUnitFloats * sizeof(float)));
  EXPECT_EQ(run(cache, images), 0);
}

TEST_F(CachedSourceTest, WhatDoesNotFitIsEncodedAgain) {
  const auto images = planned({dir_.file("a")}, 4);
  const auto n_bytes = static_cast<int64_t>(4 * kUnitFloats * sizeof(float));
  engine::EmbeddingCache too_small(n_bytes - 1);
  engine::EmbeddingCache none(0);
  engine::EmbeddingCache just_enough(n_bytes);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(run(too_small, images), 6);
    EXPECT_EQ(run(none, images), 6);
    EXPECT_EQ(run(just_enough, images), i == 0 ? 6 : 0);
  }
  EXPECT_EQ(too_small.n_bytes(), 0);
}

TEST_F(CachedSourceTest, TheLeastRecentlyUsedPictureGoesFirst) {
  const auto n_bytes = static_cast<int64_t>(2 * kUnitFloats * sizeof(float));
  engine::EmbeddingCache cache(2 * n_bytes);
  std::ofstream(dir_.file("c")) << "c";
  const auto a = planned({dir_.file("a")}, 2);
  const auto b = planned({dir_.file("b")}, 2);
  const auto c = planned({dir_.file("c")}, 2);
  run(cache, a);
  run(cache, b);
  EXPECT_EQ(run(cache, a), 0);
  EXPECT_GT(run(cache, c), 0);  // instead of b
  EXPECT_EQ(cache.n_bytes(), 2 * n_bytes);
  EXPECT_EQ(run(cache, a), 0);
  EXPECT_GT(run(cache, b), 0);
}

TEST_F(CachedSourceTest, AnUnfinishedPictureIsNotHeld) {
  engine::EmbeddingCache cache(1 << 20);
  const auto images = planned({dir_.file("a")}, 4);
  {
    CountingSource source;
    engine::CachedSource cached(cache, source, images);
    for (int unit = 0; unit < 3; ++unit) cached.unit(0, unit);
  }
  EXPECT_EQ(cache.n_bytes(), 0);
  EXPECT_EQ(run(cache, images), 6);
}

TEST_F(CachedSourceTest, AChangedFileOrAnotherGridIsAnotherPicture) {
  const auto narrow = planned({dir_.file("a")}, 2);
  const auto wide = planned({dir_.file("a")}, 3);
  EXPECT_NE(engine::embedding_key(narrow[0]), engine::embedding_key(wide[0]));
  const std::string before = engine::embedding_key(narrow[0]);
  std::ofstream(dir_.file("a")) << "longer";
  EXPECT_NE(engine::embedding_key(narrow[0]), before);
}

}  // namespace
}  // namespace plateau::test

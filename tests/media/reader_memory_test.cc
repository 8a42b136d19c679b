#include "media/reader_memory.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include "base/memory.h"
#include "media/fixtures.h"
#include "support/memory_figures.h"

namespace plateau::media::testing {
namespace {

struct Case {
  const char* name;
  int width;
  int height;
  const char* suffix;
};

class ReaderMemory : public ::testing::TestWithParam<Case> {};

TEST_P(ReaderMemory, StaysBelowTheEstimate) {
  if (!test::kMemoryIsOurs) GTEST_SKIP() << "memory is the sanitizer's";
  mallopt(M_MMAP_THRESHOLD, 256 << 10);  // as the program does: freed buffers leave the process
  const TempDir dir;
  const std::string path = dir.file("picture");
  ASSERT_TRUE(save(gradient(GetParam().width, GetParam().height), path, GetParam().suffix));
  const ImageInfo info = probe_image(path, {});
  const TileGrid grid = plan_tiles(info.width, info.height, {.tile_size = 112});
  malloc_trim(0);
  const int64_t before = anon_bytes();
  AnonWatch watch;
  TileReader reader(path, grid, {});
  while (reader.next()) watch.peak_bytes();
  const int64_t held = watch.peak_bytes() - before;
  const int64_t estimate = reader_bytes(info, grid);
  EXPECT_LE(held, estimate);
  EXPECT_LE(estimate, 3 * held / 2 + (int64_t{1} << 20));
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, ReaderMemory,
    ::testing::Values(Case{"Tile", 112, 112, "a.jpg"}, Case{"Small", 1008, 1008, "a.jpg"},
                      Case{"SmallPng", 1008, 1008, "a.png"}, Case{"Uhd", 3840, 2160, "a.jpg"},
                      Case{"UhdPng", 3840, 2160, "a.png"}, Case{"Wide", 20000, 560, "a.jpg"},
                      Case{"WidePng", 20000, 560, "a.png"}, Case{"Wider", 40000, 336, "a.jpg"},
                      Case{"Tall", 336, 20000, "a.jpg"}, Case{"Webp", 2000, 2000, "a.webp"}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace plateau::media::testing

// Ctrl-C while a large picture is read.
#include <gmock/gmock.h>

#include <chrono>

#include "cli/plateau_process.h"

namespace plateau::cli::testing {
namespace {

TEST(Interrupt, StopsWithinABlock) {
  const TempDir dir;
  // 8,000 tiles: much longer than the test allows.
  media::testing::write_blank_png(10000, 10000, dir.file("large.png"));
  const auto start = std::chrono::steady_clock::now();
  const Finished finished = plateau(pico_run({"--image", dir.file("large.png"), "-p", "hi"}),
                                    {.interrupt_after = "prompt tokens"});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(finished.exit_code, 130) << finished.err;
  EXPECT_THAT(finished.err, ::testing::HasSubstr("interrupted"));
  EXPECT_THAT(finished.out, ::testing::IsEmpty());
  EXPECT_LT(took.count(), 10.0);
}

}  // namespace
}  // namespace plateau::cli::testing

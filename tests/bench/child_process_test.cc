// What is known of a child: output, exit code, signals, the last words.
#include "bench/child_process.h"

#include <gmock/gmock.h>

#include "base/stopwatch.h"

namespace plateau::bench {
namespace {

ChildResult shell(const std::string& script, const std::function<bool()>& should_cancel = {}) {
  return run_child("/bin/sh", {"-c", script}, should_cancel);
}

TEST(RunChild, OutputExitCodeAndTheLastLineOfErrors) {
  const ChildResult result = shell("echo one; echo two; echo first >&2; echo last >&2; exit 3");
  EXPECT_EQ(result.out, "one\ntwo\n");
  EXPECT_EQ(result.error, "last");
  EXPECT_EQ(result.exit_code, 3);
}

TEST(RunChild, ASignalIsToldAs128AndItsNumber) { EXPECT_EQ(shell("kill -9 $$").exit_code, 137); }

TEST(RunChild, MoreOutputThanAPipeHolds) {
  EXPECT_EQ(shell("head -c 1000000 /dev/zero").out.size(), 1000000u);
}

TEST(RunChild, IsAskedToStop) {
  const Stopwatch watch;
  const ChildResult result = shell("exec sleep 600", [] { return true; });
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_LT(watch.ms(), 60'000);
}

TEST(RunChild, AMissingProgramIsAnError) {
  try {
    (void)run_child("/nonexistent/program", {}, {});
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("/nonexistent/program"));
  }
}

TEST(OwnCommandLine, StartsWithThisProgram) {
  EXPECT_THAT(own_command_line().at(0), ::testing::HasSubstr("bench_unit_test"));
}

}  // namespace
}  // namespace plateau::bench

#include "eval/run_workers.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <set>
#include <thread>

#include "eval/eval_test_support.h"

namespace plateau::eval {
namespace {

using ::testing::HasSubstr;

bool never() { return false; }

Error error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorCode::kInternal, ""};
}

/// No process is left behind.
void expect_no_children() {
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Workers, EveryTaskIsDoneOnce) {
  for (const int n_jobs : {1, 3, 8}) {
    for (const size_t n_tasks : {size_t{0}, size_t{1}, size_t{20}}) {
      std::multiset<std::string> lines;
      run_in_workers(
          n_tasks, n_jobs,
          [](size_t task, const LineSink& emit) {
            emit(std::to_string(task) + "a\n");
            emit(std::to_string(task) + "b\n");
          },
          [&](const std::string& line) { lines.insert(line); }, never);
      EXPECT_EQ(lines.size(), 2 * n_tasks);
      for (size_t i = 0; i < n_tasks; ++i) {
        EXPECT_EQ(lines.count(std::to_string(i) + "a\n"), 1U);
        EXPECT_EQ(lines.count(std::to_string(i) + "b\n"), 1U);
      }
      expect_no_children();
    }
  }
}

TEST(Workers, AreProcessesOfTheirOwn) {
  std::set<std::string> pids;
  run_in_workers(
      4, 2,
      [](size_t, const LineSink& emit) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        emit(std::to_string(getpid()));
      },
      [&](const std::string& line) { pids.insert(line); }, never);
  EXPECT_EQ(pids.size(), 2U);
  EXPECT_FALSE(pids.contains(std::to_string(getpid())));
}

TEST(Workers, LongLinesArriveWhole) {
  const std::string line(5 << 20, 'x');
  size_t n = 0;
  run_in_workers(
      2, 2, [&](size_t, const LineSink& emit) { emit(line); },
      [&](const std::string& got) { n += got == line ? 1 : 0; }, never);
  EXPECT_EQ(n, 2U);
}

TEST(Workers, AnErrorOfATaskComesOut) {
  const Error error = error_of([] {
    run_in_workers(
        10, 2,
        [](size_t task, const LineSink&) {
          if (task == 3) throw Error(ErrorCode::kCorrupt, "number three");
        },
        [](const std::string&) {}, never);
  });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_STREQ(error.what(), "number three");
  expect_no_children();
}

TEST(Workers, AKilledProcessIsNoticed) {
  int n_lines = 0;
  const Error error = error_of([&] {
    run_in_workers(
        1, 1,
        [](size_t, const LineSink& emit) {
          emit("before");
          raise(SIGKILL);
        },
        [&](const std::string&) { ++n_lines; }, never);
  });
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("signal 9"));
  EXPECT_EQ(n_lines, 1);
  expect_no_children();
}

TEST(Workers, AreStoppedWhenTheCallerHasEnough) {
  const auto forever = [](size_t, const LineSink& emit) {
    emit("started");
    while (true) pause();
  };
  EXPECT_EQ(error_of([&] {
              run_in_workers(
                  2, 2, forever,
                  [](const std::string&) { throw Error(ErrorCode::kUnavailable, "disc full"); },
                  never);
            }).code(),
            ErrorCode::kUnavailable);
  expect_no_children();
  int n_started = 0;
  EXPECT_EQ(error_of([&] {
              run_in_workers(
                  2, 2, forever, [&](const std::string&) { ++n_started; },
                  [&] { return n_started == 2; });
            }).code(),
            ErrorCode::kCancelled);
  expect_no_children();
}

}  // namespace
}  // namespace plateau::eval

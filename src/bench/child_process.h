// Runs this program again, so that a measurement has a process of its own: peaks of memory and the
// places of pages depend on what a process did before.
// Tested by tests/bench/child_process_test.cc.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace plateau::bench {

struct ChildResult {
  int exit_code = 0;  // 128 + signal where one ended it
  std::string out;    // its standard output
  std::string error;  // the last line of its standard error
};

/// The words of this process's command line.
std::vector<std::string> own_command_line();

/// Runs `program` with these arguments until it ends. While `should_cancel` (may be empty) is true,
/// the child is asked to stop (SIGINT) and waited for. Errors: kUnavailable (no process).
ChildResult run_child(const std::string& program, const std::vector<std::string>& arguments,
                      const std::function<bool()>& should_cancel);

/// To be called by the child first: it ends with its parent.
void end_with_parent();

}  // namespace plateau::bench

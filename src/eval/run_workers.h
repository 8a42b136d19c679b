// Tasks shared out over forked processes, which inherit everything that the caller has loaded:
// mapped weights exist once. Lines go back through a socket each; only the caller writes.
// Tested by tests/eval/run_workers_test.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace plateau::eval {

using LineSink = std::function<void(const std::string& line)>;
/// Runs one task and hands out its lines. May throw.
using Task = std::function<void(size_t task, const LineSink& emit)>;

/// Runs tasks [0, n_tasks), each once, in at most n_jobs processes; `on_line` is called here, in
/// whatever order lines come. The caller must have no other threads that hold locks, and no
/// accelerator open.
/// Errors: what a task throws, as an Error of the same code (others: kInternal), after the other
/// processes were stopped; what `on_line` throws; kCancelled when `should_cancel` says so;
/// kUnavailable when a process cannot be started or ends unasked, as when it is killed for memory.
void run_in_workers(size_t n_tasks, int n_jobs, const Task& task, const LineSink& on_line,
                    const std::function<bool()>& should_cancel);

}  // namespace plateau::eval

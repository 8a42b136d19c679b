// The commands of `plateau`. Each adds its options to the app and returns the function that runs
// it; that function returns the exit code and may throw plateau::Error.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace plateau::cli {

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};

Command add_run_command(CLI::App& app);
Command add_plan_command(CLI::App& app);
Command add_info_command(CLI::App& app);
Command add_needle_command(CLI::App& app);
Command add_evict_command(CLI::App& app);
Command add_bench_command(CLI::App& app);
Command add_report_command(CLI::App& app);
Command add_eval_command(CLI::App& app);

}  // namespace plateau::cli

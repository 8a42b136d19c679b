// plateau: the command line. Parses, runs one command, maps errors to exit codes.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>

#include "base/check.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "plateau/version.h"

namespace {

/// What was printed may not have been written yet.
void flush_standard_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    plateau::throw_error(plateau::ErrorCode::kUnavailable,
                         "[standard output] expected room for what was printed, it cannot be "
                         "written");
  }
}

int run_main(int argc, char** argv) {
  using namespace plateau::cli;
  CLI::App app(
      "Plateau: answers questions about pictures and films of any size inside a memory bound.",
      "plateau");
  app.set_version_flag("--version", fmt::format("plateau {} (llama.cpp {})", PLATEAU_VERSION,
                                                PLATEAU_LLAMA_CPP_TAG));
  app.require_subcommand(1);
  const std::vector<Command> commands = {add_run_command(app),   add_plan_command(app),
                                         add_info_command(app),  add_needle_command(app),
                                         add_evict_command(app), add_eval_command(app),
                                         add_bench_command(app), add_report_command(app)};
  try {
    std::vector<std::string> arguments = normalized_arguments(argc, argv);
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them last first
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
      fmt::print(stderr, "plateau: unknown command '{}'; try plateau --help\n", argv[1]);
      return kExitUsage;
    }
    const int code = app.exit(error);
    if (!std::cout.flush()) return kExitInternal;
    return code == 0 ? kExitAnswered : kExitUsage;
  }
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    const int code = command.run();
    flush_standard_output();
    return code;
  }
  return kExitUsage;
}

// Buffers go back to the system when they are freed, so that what one stage held does not add to
// the next one's peak. Without this, glibc raises the threshold to the largest buffer that was
// freed.
constexpr int kOwnPagesFrom = 256 << 10;

}  // namespace

int main(int argc, char** argv) {
  mallopt(M_MMAP_THRESHOLD, kOwnPagesFrom);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may grow no further is an error, not an end
  try {
    return run_main(argc, argv);
  } catch (const plateau::Error& error) {
    fmt::print(stderr, "plateau: {}\n", error.what());
    return plateau::cli::exit_code(error.code());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "plateau: out of memory\n");
    return plateau::cli::kExitDoesNotFit;
  } catch (const std::exception& error) {
    fmt::print(stderr, "plateau: internal fault: {}\n", error.what());
    return plateau::cli::kExitInternal;
  }
}

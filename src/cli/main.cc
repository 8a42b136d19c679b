// plateau: the command line. Parses, runs one command, maps errors to exit codes.
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>

#include "base/check.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/say.h"
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
      plateau::cli::say("plateau: unknown command '{}'; try plateau --help\n", argv[1]);
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

/// Where a standard stream is closed, the next file that is opened would take its number, and
/// messages would be written into it. Not for writing, so that an answer that cannot be printed is
/// still an error.
void open_standard_streams() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) ::close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  mallopt(M_MMAP_THRESHOLD, kOwnPagesFrom);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may grow no further is an error, not an end
  try {
    return run_main(argc, argv);
  } catch (const plateau::Error& error) {
    plateau::cli::say("plateau: {}\n", error.what());
    return plateau::cli::exit_code(error.code());
  } catch (const std::bad_alloc&) {
    plateau::cli::say("plateau: out of memory\n");
    return plateau::cli::kExitDoesNotFit;
  } catch (const std::exception& error) {
    plateau::cli::say("plateau: internal fault: {}\n", error.what());
    return plateau::cli::kExitInternal;
  }
}

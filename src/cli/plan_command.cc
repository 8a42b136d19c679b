// plateau plan: what a request would cost, before anything is loaded.
#include <fmt/format.h>

#include <memory>

#include "base/byte_size.h"
#include "base/plural.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/film_text.h"
#include "cli/run_options.h"
#include "cli/stats_json.h"
#include "plateau/plan.h"

namespace plateau::cli {
namespace {

void print_row(const char* name, const std::string& value) {
  fmt::print("{:<22}{}\n", name, value);
}

void print_table(const Plan& plan) {
  const Usage& usage = plan.usage;
  for (const ImageReport& image : usage.images) {
    if (image.video) {
      print_row("film", fmt::format("{}: {}", image.path, film_text(image)));
      continue;
    }
    const std::string tiles = image.n_tiles > 0 ? ", " + counted(image.n_tiles, "tile") : "";
    print_row("picture",
              fmt::format("{}: {}x{} {}, used at {}x{}{}, {}", image.path, image.width,
                          image.height, image.format, image.used_width, image.used_height, tiles,
                          counted(image.tokens_made, "token")));
  }
  print_row("tokens", fmt::format("{} ({} visual, {} text)", usage.prompt_tokens,
                                  usage.visual_tokens, usage.text_tokens));
  print_row("positions", fmt::to_string(usage.prompt_positions));
  print_row("blocks", fmt::to_string(usage.blocks));
  print_row("kept tokens",
            usage.kv_budget == 0 ? "all" : fmt::format("{} per layer and head", usage.kv_budget));
  print_row("KV cells", fmt::format("{} per layer and head", usage.kv_arena_tokens));
  for (const std::string& note : usage.notes) print_row("note", note);
  for (const std::string& change : plan.concessions) print_row("to fit --memory", change);
  fmt::print("\n{:<12}{:<12}{:>12}\n", "part", "device", "at most");
  for (const MemoryPart& part : plan.memory) {
    fmt::print("{:<12}{:<12}{:>12}{}\n", part.name, part.device, format_byte_size(part.bytes),
               part.mapped ? "  of the file, mapped" : "");
  }
  fmt::print("{:<12}{:<12}{:>12}\n", "total", "", format_byte_size(total_bytes(plan.memory)));
}

}  // namespace

Command add_plan_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("plan", "Say what a request would cost, without loading weights");
  auto options = std::make_shared<RunOptions>();
  auto json = std::make_shared<bool>(false);
  add_request_options(*command, *options);
  command->add_flag("--json", *json, "Print JSON instead of a table");
  return {command, [options, json] {
            const Plan plan = plateau::plan(make_engine_options(*options), make_request(*options),
                                            memory_bound(*options));
            if (*json) {
              fmt::print("{}", plan_json(plan));
            } else {
              print_table(plan);
            }
            return kExitAnswered;
          }};
}

}  // namespace plateau::cli

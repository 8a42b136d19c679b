// plateau run: one question, one answer.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/byte_size.h"
#include "base/check.h"
#include "base/memory.h"
#include "base/plural.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/film_text.h"
#include "cli/interrupt.h"
#include "cli/output_file.h"
#include "cli/progress_bar.h"
#include "cli/run_options.h"
#include "cli/say.h"
#include "cli/stats_json.h"
#include "cli/text_file.h"
#include "cli/trace_json.h"
#include "media/heatmap.h"
#include "plateau/engine.h"
#include "plateau/plan.h"

namespace plateau::cli {
namespace {

void print_plan(const Plan& plan) {
  const Usage& usage = plan.usage;
  for (const ImageReport& image : usage.images) {
    if (image.video) {
      say("plateau: {}: {}\n", image.path, film_text(image));
      continue;
    }
    const std::string tiles = image.n_tiles > 0 ? ", " + counted(image.n_tiles, "tile") : "";
    say("plateau: {}: {}x{} {}{}, {}\n", image.path, image.width, image.height, image.format, tiles,
        counted(image.tokens_made, "visual token"));
  }
  for (const std::string& note : usage.notes) say("plateau: {}\n", note);
  for (const std::string& change : plan.concessions) {
    say("plateau: to fit --memory: {}\n", change);
  }
  say("plateau: {} in {}, {} kept, KV memory {}\n", counted(usage.prompt_tokens, "prompt token"),
      counted(usage.blocks, "block"),
      usage.kv_budget == 0 ? "all" : fmt::format("{}", usage.kv_budget),
      format_byte_size(usage.kv_bytes));
  say("plateau: at most {} of memory, {} of it weights\n",
      format_byte_size(total_bytes(plan.memory)), format_byte_size(usage.weights_bytes));
}

/// What was only seen on the way, such as damage to a film.
void print_late_notes(const Plan& plan, const Answer& answer) {
  const std::vector<std::string>& known = plan.usage.notes;
  for (const std::string& note : answer.usage.notes) {
    if (std::find(known.begin(), known.end(), note) == known.end()) say("plateau: {}\n", note);
  }
}

void write_heatmap(const RunOptions& options, const Answer& answer) {
  const auto& media = answer.usage.images;
  const ImageReport& image = *std::find_if(media.begin(), media.end(),
                                           [](const ImageReport& medium) { return !medium.video; });
  media::write_heatmap(image.path, options.heatmap,
                       {image.grid_cols, image.grid_rows, image.kept_share}, {});
}

void check_output_options(const RunOptions& options) {
  std::vector<std::string> inputs;
  bool has_picture = false;
  for (const ContentPart& part : options.media) {
    if (const auto* image = std::get_if<ImagePart>(&part)) {
      inputs.push_back(image->path);
      has_picture = true;
    } else if (const auto* film = std::get_if<VideoPart>(&part)) {
      inputs.push_back(film->path);
    }
  }
  if (!options.heatmap.empty() && !has_picture) {
    throw_error(ErrorCode::kInvalidArgument,
                "[--heatmap] expected a picture, got none; a film has no heatmap");
  }
  inputs.insert(inputs.end(), {options.engine.model_path, options.engine.mmproj_path,
                               options.prompt_file, options.chat_template_file});
  check_outputs({{"--stats-json", options.stats_json, /*may_be_stdout=*/true},
                 {"--trace-json", options.trace_json},
                 {"--heatmap", options.heatmap}},
                inputs);
}

int run(const RunOptions& options) {
  AnonWatch anon;
  install_interrupt_handler();
  const Request request = make_request(options);
  check_output_options(options);
  const Plan plan = plateau::plan(make_engine_options(options), request, memory_bound(options));
  if (!options.quiet) print_plan(plan);
  require_room(plan);
  std::optional<TraceJson> trace;
  if (!options.trace_json.empty()) trace.emplace(options.trace_json);

  ProgressBar bar;
  Engine engine = Engine::open(plan.engine, [&](float fraction) {
    if (!options.quiet) bar.draw(fraction, "loading the model");
    return !interrupted();
  });
  bar.clear();

  RequestCallbacks callbacks;
  callbacks.should_cancel = interrupted;
  callbacks.on_text = [&](std::string_view text) {
    bar.clear();
    fmt::print("{}", text);
    std::fflush(stdout);
  };
  if (trace) callbacks.on_block_kept = [&](const BlockTrace& block) { trace->add(block); };
  if (!options.quiet) {
    callbacks.on_progress = [&](const Progress& progress) {
      bar.draw(static_cast<double>(progress.tokens_done) / static_cast<double>(progress.tokens),
               fmt::format("{}/{} tiles{}, {}/{} tokens", progress.tiles_done, progress.tiles,
                           progress.encoded_share < 1
                               ? fmt::format(" (next {:.0f} %)", 100 * progress.encoded_share)
                               : "",
                           progress.tokens_done, progress.tokens));
    };
  }
  const Answer answer = engine.run(plan.request, callbacks);
  bar.clear();
  fmt::print("\n");
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw_error(ErrorCode::kUnavailable, "[standard output] the answer cannot be written");
  }
  if (!options.quiet) print_late_notes(plan, answer);
  if (trace) trace->finish();
  if (!options.heatmap.empty()) write_heatmap(options, answer);
  if (!options.stats_json.empty()) {
    write_text_file(options.stats_json, stats_json(plan, answer,
                                                   {.peak_rss_bytes = peak_rss_bytes(),
                                                    .peak_anon_bytes = anon.peak_bytes()}));
  }
  return kExitAnswered;
}

}  // namespace

Command add_run_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "Answer one question about pictures and films");
  auto options = std::make_shared<RunOptions>();
  add_run_options(*command, *options);
  return {command, [options] { return run(*options); }};
}

}  // namespace plateau::cli

// plateau run: one question, one answer.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>

#include "base/check.h"
#include "base/memory.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/progress_bar.h"
#include "cli/stats_json.h"
#include "cli/text_file.h"
#include "plateau/engine.h"

namespace plateau::cli {
namespace {

struct RunOptions {
  EngineOptions engine;
  std::vector<std::string> images;
  std::string prompt;
  std::string prompt_file;
  std::string system;
  std::string chat_template_file;
  Request request;
  std::string stats_json;
  bool quiet = false;
};

const std::map<std::string, CacheType> kCacheTypes = {
    {"f16", CacheType::kF16}, {"q8_0", CacheType::kQ8_0}, {"f32", CacheType::kF32}};

void add_options(CLI::App& app, RunOptions& o) {
  app.add_option("-m,--model", o.engine.model_path, "Text model (GGUF)")->required();
  app.add_option("--mmproj", o.engine.mmproj_path, "Vision projector (GGUF)");
  app.add_option("--image", o.images, "A picture; repeat for more, in this order")
      ->take_all()
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  auto* prompt = app.add_option("-p,--prompt", o.prompt, "The question");
  app.add_option("-f,--file", o.prompt_file, "Read the question from a file, - for stdin")
      ->excludes(prompt);
  app.add_option("--system", o.system, "System message");
  app.add_option("--chat-template-file", o.chat_template_file,
                 "Jinja template used instead of the model's own");

  app.add_option("-n,--n-predict", o.request.max_new_tokens, "Most tokens to answer with")
      ->capture_default_str();
  app.add_option("--temp", o.request.sampling.temperature, "0: always the likeliest token")
      ->capture_default_str();
  app.add_option("--top-k", o.request.sampling.top_k, "0: all")->capture_default_str();
  app.add_option("--top-p", o.request.sampling.top_p, "1: all")->capture_default_str();
  app.add_option("--min-p", o.request.sampling.min_p, "0: all")->capture_default_str();
  app.add_option("--seed", o.request.sampling.seed, "Of the random choice")->capture_default_str();

  app.add_option("--max-tiles", o.request.image.max_tiles,
                 "Cap on tiles per picture; 0: as many as native detail needs")
      ->capture_default_str();
  app.add_flag("!--no-thumbnail", o.request.image.thumbnail,
               "Do not append the whole picture as one more tile");
  app.add_option("--max-image-pixels", o.request.image.max_pixels,
                 "Refuse larger pictures from their header")
      ->capture_default_str();

  app.add_option("--block", o.engine.block,
                 "Tokens per prefill block; 0: as many whole tiles as fit 1024 tokens")
      ->capture_default_str();
  app.add_option("--cache-type-k", o.engine.cache_type_k, "f16, q8_0 or f32; also -ctk")
      ->transform(CLI::CheckedTransformer(kCacheTypes))
      ->default_str("f16");
  app.add_option("--cache-type-v", o.engine.cache_type_v, "f16, q8_0 or f32; also -ctv")
      ->transform(CLI::CheckedTransformer(kCacheTypes))
      ->default_str("f16");
  app.add_option("-t,--threads", o.engine.n_threads, "CPU threads; 0: all usable cores")
      ->capture_default_str();
  app.add_option("--device", o.engine.device, "Compute device; default: first GPU, else CPU");
  app.add_option("--n-gpu-layers", o.engine.n_gpu_layers,
                 "Layers on the device; -1: all; also -ngl")
      ->capture_default_str();
  app.add_option("--encoder-batch", o.engine.encoder_batch, "Tiles encoded at once")
      ->capture_default_str();

  app.add_option("--stats-json", o.stats_json, "Write figures to a file, - for stdout");
  app.add_flag("-q,--quiet", o.quiet, "Only the answer and errors");
}

Request make_request(const RunOptions& o) {
  Request request = o.request;
  Message user{"user", {}};
  for (const std::string& image : o.images) user.content.push_back(ImagePart{image});
  const std::string text = o.prompt_file.empty() ? o.prompt : read_text_file(o.prompt_file);
  if (text.empty() && o.images.empty()) {
    throw_error(ErrorCode::kInvalidArgument,
                "[run] expected a question or a picture, got neither; try -p \"...\"");
  }
  if (!text.empty()) user.content.push_back(TextPart{text});
  if (!o.system.empty()) request.messages.push_back({"system", {TextPart{o.system}}});
  request.messages.push_back(std::move(user));
  return request;
}

void print_plan(const Usage& usage) {
  for (const ImageReport& image : usage.images) {
    fmt::print(stderr, "plateau: {}: {}x{} {}, {} tiles, {} visual tokens\n", image.path,
               image.width, image.height, image.format, image.n_tiles, image.tokens_made);
  }
  for (const std::string& note : usage.notes) fmt::print(stderr, "plateau: {}\n", note);
  fmt::print(stderr, "plateau: {} prompt tokens in {} blocks, KV memory {:.1f} MiB\n",
             usage.prompt_tokens, usage.blocks, static_cast<double>(usage.kv_bytes) / (1 << 20));
}

int64_t file_bytes(const std::string& path) {
  std::error_code ec;
  const auto size = std::filesystem::file_size(path, ec);
  return ec ? 0 : static_cast<int64_t>(size);
}

int run(const RunOptions& options) {
  AnonWatch anon;
  install_interrupt_handler();
  const Request request = make_request(options);
  EngineOptions engine_options = options.engine;
  if (!options.chat_template_file.empty()) {
    engine_options.chat_template = read_text_file(options.chat_template_file);
  }
  ProgressBar bar;
  Engine engine = Engine::open(engine_options, [&](float fraction) {
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
  if (!options.quiet) {
    callbacks.on_planned = print_plan;
    callbacks.on_progress = [&](const Progress& progress) {
      bar.draw(static_cast<double>(progress.tokens_done) / static_cast<double>(progress.tokens),
               fmt::format("{}/{} tiles, {}/{} tokens", progress.tiles_done, progress.tiles,
                           progress.tokens_done, progress.tokens));
    };
  }
  const Answer answer = engine.run(request, callbacks);
  bar.clear();
  fmt::print("\n");
  std::fflush(stdout);
  if (!options.stats_json.empty()) {
    write_text_file(options.stats_json,
                    stats_json(answer, {.peak_rss_bytes = peak_rss_bytes(),
                                        .peak_anon_bytes = anon.peak_bytes(),
                                        .weights_bytes = file_bytes(options.engine.model_path),
                                        .mmproj_bytes = file_bytes(options.engine.mmproj_path)}));
  }
  return kExitAnswered;
}

}  // namespace

Command add_run_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "Answer one question about pictures");
  auto options = std::make_shared<RunOptions>();
  add_options(*command, *options);
  return {command, [options] { return run(*options); }};
}

}  // namespace plateau::cli

// plateau bench: time and memory over a sweep of sizes and settings (docs/bench.md).
// Tested by tests/cli/bench_test.cc.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "bench/child_process.h"
#include "bench/fingerprint.h"
#include "bench/measure.h"
#include "bench/record.h"
#include "bench/sweep.h"
#include "bench/table.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/jsonl_file.h"
#include "cli/output_file.h"
#include "cli/run_options.h"
#include "cli/say.h"
#include "cli/validators.h"
#include "kv/policy.h"
#include "model/backend.h"
#include "synth/shapes.h"

namespace plateau::cli {
namespace {

const std::map<std::string, CacheType> kCacheTypes = {
    {"f16", CacheType::kF16}, {"q8_0", CacheType::kQ8_0}, {"f32", CacheType::kF32}};

struct BenchOptions {
  bench::BenchPoint base;
  synth::ShapeRequest shape;
  std::vector<int64_t> tokens;
  std::vector<int64_t> tiles;
  std::vector<int64_t> frames;
  std::string frame_size = "448x448";
  std::vector<std::string> budgets = {"full"};
  std::vector<std::string> policies = {"snapkv"};
  std::vector<std::string> blocks = {"0"};
  std::vector<std::string> cache_types_k = {"f16"};
  std::vector<std::string> cache_types_v = {"f16"};
  std::vector<int> threads = {0};
  std::string against;
  std::string out = "-";
  bool isolate = true;
  bool quiet = false;
  int point = -1;  // of the sweep, for the child of an isolated measurement
};

/// Where llama.cpp is cached too (scripts/llama-cpp.sh).
std::string default_shape_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  if (const auto cache = variable("PLATEAU_CACHE_DIR"); !cache.empty()) return cache / "shapes";
  if (const auto cache = variable("XDG_CACHE_HOME"); !cache.empty()) {
    return cache / "plateau" / "shapes";
  }
  if (const auto home = variable("HOME"); !home.empty()) {
    return home / ".cache" / "plateau" / "shapes";
  }
  return std::filesystem::temp_directory_path() / "plateau-shapes";
}

void tell(const BenchOptions& o, const std::string& line) {
  if (!o.quiet && o.point < 0) say("{}\n", line);
}

/// Fills the model paths; returns the shape's published depth, 0 for a file.
int prepare_model(BenchOptions& o) {
  EngineOptions& engine = o.base.engine;
  if (o.shape.shape.empty() == engine.model_path.empty()) {
    throw_error(ErrorCode::kInvalidArgument,
                "[bench] expected either a model or a shape; try -m FILE or --shape 0.5b");
  }
  if (o.shape.shape.empty()) return 0;
  if (o.shape.folder.empty()) o.shape.folder = default_shape_folder();
  o.shape.on_write = [&](const std::string& path, int64_t n_bytes) {
    tell(o, fmt::format("plateau: writing {}, {} MiB of random weights", path, n_bytes >> 20));
  };
  o.shape.should_cancel = interrupted;
  const synth::ShapeFile text = synth::make_text_shape(o.shape);
  engine.model_path = text.path;
  if (text.n_layer < text.n_layer_published) {
    tell(o,
         fmt::format("plateau: {} is cut to {} of {} layers: time and KV bytes are not the whole "
                     "model's",
                     o.shape.shape, text.n_layer, text.n_layer_published));
  }
  if (!o.tiles.empty() || !o.frames.empty() || !o.base.image.empty()) {
    if (engine.mmproj_path.empty()) engine.mmproj_path = synth::make_vision_shape(o.shape).path;
  }
  return text.n_layer_published;
}

/// What `run` makes of the same options.
KvOptions parse_kv(const std::string& budget, const std::string& block) {
  RunOptions run;
  run.kv_budget = budget;
  run.block = block;
  run.prompt = "-";
  return make_request(run).kv;
}

/// "448x448".
std::pair<int, int> parse_frame_size(const std::string& text) {
  constexpr int kMost = 8192;
  const auto [width, height] = [&] {
    std::pair<int, int> size(0, 0);
    const char* end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, size.first);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != 'x') return std::pair(0, 0);
    const auto second = std::from_chars(first.ptr + 1, end, size.second);
    return second.ec == std::errc() && second.ptr == end ? size : std::pair(0, 0);
  }();
  if (width < 1 || height < 1 || width > kMost || height > kMost) {
    throw_error(ErrorCode::kInvalidArgument,
                "[--frame-size] expected WIDTHxHEIGHT of 1 to {} pixels, got {}", kMost, text);
  }
  return {width, height};
}

bench::Sweep make_sweep(const BenchOptions& o) {
  bench::Sweep sweep;
  sweep.base = o.base;
  sweep.base.isolated = o.isolate;
  sweep.base.against_llama_cpp = !o.against.empty();
  sweep.n_inputs = o.tokens;
  if (!o.tiles.empty()) {
    sweep.base.input = bench::InputKind::kTiles;
    sweep.n_inputs = o.tiles;
  } else if (!o.frames.empty()) {
    sweep.base.input = bench::InputKind::kFrames;
    sweep.n_inputs = o.frames;
    std::tie(sweep.base.frame_width, sweep.base.frame_height) = parse_frame_size(o.frame_size);
  } else if (!o.base.image.empty()) {
    sweep.base.input = bench::InputKind::kImage;
  } else if (o.tokens.empty()) {
    sweep.n_inputs = {1024};
  }
  for (const std::string& budget : o.budgets) sweep.budgets.push_back(parse_kv(budget, "0"));
  for (const std::string& block : o.blocks) sweep.blocks.push_back(parse_kv("full", block));
  for (const std::string& type : o.cache_types_k) {
    sweep.cache_types_k.push_back(kCacheTypes.at(type));
  }
  for (const std::string& type : o.cache_types_v) {
    sweep.cache_types_v.push_back(kCacheTypes.at(type));
  }
  for (const std::string& policy : o.policies) {
    if (policy != kv::kFullPolicy) (void)kv::make_policy(policy, o.base.request.kv.policy_options);
  }
  sweep.policies = o.policies;
  for (const int n : o.threads) sweep.threads.push_back(n > 0 ? n : model::usable_cores());
  return sweep;
}

std::string measured_line(const std::string& run, const bench::BenchPoint& point) {
  return bench::measurement_line(run, point, bench::measure(point, interrupted));
}

struct Outcome {
  std::string line;
  int exit_code = kExitAnswered;
};

/// In a process of its own: this program with the same arguments and the point's number. Its
/// standard output is the record.
Outcome measure_isolated(const std::string& run, const bench::BenchPoint& point, size_t index,
                         std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--point", std::to_string(index), "--run-id", run});
  const bench::ChildResult child = bench::run_child("/proc/self/exe", arguments, interrupted);
  if (interrupted()) throw_error(ErrorCode::kCancelled, "interrupted");
  if (child.exit_code == kExitAnswered) {
    return {child.out.substr(0, child.out.find('\n')), kExitAnswered};
  }
  constexpr std::string_view kPrefix = "plateau: ";
  const size_t begin = child.error.starts_with(kPrefix) ? kPrefix.size() : 0;
  const std::string reason =
      !child.error.empty() ? child.error.substr(begin)
                           : fmt::format("the process ended by signal {}{}", child.exit_code - 128,
                                         child.exit_code == 128 + 9 ? ", out of memory?" : "");
  return {bench::failure_line(run, point, reason), child.exit_code};
}

Outcome measure_here(const std::string& run, const bench::BenchPoint& point) {
  try {
    return {measured_line(run, point), kExitAnswered};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) throw;
    return {bench::failure_line(run, point, error.what()), exit_code(error.code())};
  }
}

int run_sweep(const BenchOptions& o, const std::vector<bench::BenchPoint>& points,
              int n_layer_published) {
  std::vector<std::string> words = bench::own_command_line();
  bench::Fingerprint fingerprint = bench::take_fingerprint(o.base.engine.model_path, words);
  if (n_layer_published > 0) fingerprint.n_layer_published = n_layer_published;
  JsonlFile out(o.out, {"fingerprint", "bench"});
  out.add(bench::fingerprint_line(fingerprint));
  const bool against = !o.against.empty();
  tell(o, bench::table_heading(against));
  words.erase(words.begin());
  int exit_code = kExitAnswered;
  for (size_t i = 0; i < points.size(); ++i) {
    const Outcome outcome = o.isolate ? measure_isolated(fingerprint.run, points[i], i, words)
                                      : measure_here(fingerprint.run, points[i]);
    out.add(outcome.line);
    tell(o, bench::table_row(outcome.line, against));
    if (exit_code == kExitAnswered) exit_code = outcome.exit_code;
  }
  return exit_code;
}

int run_bench(const BenchOptions& given, const std::string& run_id) {
  install_interrupt_handler();
  BenchOptions o = given;
  if (o.point >= 0) bench::end_with_parent();
  const int n_layer_published = prepare_model(o);
  const std::vector<bench::BenchPoint> points = bench::expand(make_sweep(o));
  if (o.point < 0) {
    check_outputs({{"--out", o.out, /*may_be_stdout=*/true}},
                  {o.base.engine.model_path, o.base.engine.mmproj_path, o.base.image});
    return run_sweep(o, points, n_layer_published);
  }
  if (o.point >= static_cast<int>(points.size())) {
    throw_error(ErrorCode::kInvalidArgument, "[--point] expected 0 to {}, got {}",
                points.size() - 1, o.point);
  }
  JsonlFile("-", {}).add(measured_line(run_id, points[static_cast<size_t>(o.point)]));
  return kExitAnswered;
}

void add_model_options(CLI::App& app, BenchOptions& o) {
  std::string names;
  for (const synth::Shape& shape : synth::shapes()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", shape.name);
  }
  app.add_option("-m,--model", o.base.engine.model_path, "Text model (GGUF)");
  app.add_option("--shape", o.shape.shape, "Or random weights in a published shape: " + names);
  app.add_option("--type", o.shape.type, "Of the random weights: f16, q4_0 or q8_0")
      ->capture_default_str();
  app.add_option("--layers", o.shape.n_layer, "Cut the shape's depth, widths stay; 0: as published")
      ->capture_default_str();
  app.add_option("--shape-dir", o.shape.folder,
                 "Where random models are kept; default: the cache folder");
  app.add_option("--mmproj", o.base.engine.mmproj_path, "Vision projector (GGUF)");
}

void add_input_options(CLI::App& app, BenchOptions& o) {
  constexpr int64_t kMost = int64_t{1} << 24;
  auto* tokens = app.add_option("--tokens", o.tokens,
                                "Visual tokens, comma separated: random embeddings, no encoder; "
                                "default: 1024")
                     ->delimiter(',')
                     ->check(CLI::Range(int64_t{1}, kMost));
  auto* tiles = app.add_option("--tiles", o.tiles, "Random tiles through the vision encoder")
                    ->delimiter(',')
                    ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
                    ->excludes(tokens);
  auto* frames = app.add_option("--frames", o.frames,
                                "Random frames of a film, one a second, through the vision encoder")
                     ->delimiter(',')
                     ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
                     ->excludes(tokens)
                     ->excludes(tiles);
  app.add_option("--frame-size", o.frame_size,
                 "Their pixels; a family of tiles stretches a frame to one")
      ->needs(frames)
      ->capture_default_str();
  app.add_option("--image", o.base.image, "A picture, from the file to the answer")
      ->excludes(tokens)
      ->excludes(tiles)
      ->excludes(frames);
}

void add_setting_options(CLI::App& app, BenchOptions& o) {
  std::string names;
  for (const kv::PolicyEntry& entry : kv::policies()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  }
  std::vector<std::string> types;
  for (const auto& [name, type] : kCacheTypes) types.push_back(name);
  KvOptions& kv = o.base.request.kv;
  app.add_option("--kv-budget", o.budgets, "Tokens that the cache keeps, or full; comma separated")
      ->delimiter(',');
  app.add_option("--policy", o.policies, "Comma separated: " + names)->delimiter(',');
  app.add_option("--block", o.blocks,
                 "Tokens per prefill block, or tile, row, frame; comma separated")
      ->delimiter(',');
  app.add_flag("--strict", kv.strict, "Evict before each block");
  app.add_flag_callback(
      "--no-bulk", [&kv] { kv.bulk = false; }, "Block by block from the start");
  add_policy_options(app, kv.policy_options);
  app.add_option("--cache-type-k", o.cache_types_k, "f16, q8_0, f32; comma separated; also -ctk")
      ->delimiter(',')
      ->check(CLI::IsMember(types).description(""));
  app.add_option("--cache-type-v", o.cache_types_v, "f16, q8_0, f32; comma separated; also -ctv")
      ->delimiter(',')
      ->check(CLI::IsMember(types).description(""));
  app.add_option("-t,--threads", o.threads, "CPU threads, comma separated; 0: all usable cores")
      ->delimiter(',')
      ->check(CLI::Range(0, 512));
  app.add_option("--device", o.base.engine.device, "Compute device; default: first GPU, else CPU");
  app.add_option("--n-gpu-layers", o.base.engine.n_gpu_layers,
                 "Layers on the device; -1: all; also -ngl")
      ->check(gpu_layers())
      ->capture_default_str();
  app.add_option("--encoder-batch", o.base.engine.encoder_batch,
                 "Tiles encoded at once; 0: as many as make 1024 patches")
      ->capture_default_str();
}

void add_measuring_options(CLI::App& app, BenchOptions& o) {
  app.add_option("--decode", o.base.n_decode, "Tokens to decode after the prompt")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--repeats", o.base.n_repeats, "Runs of each measurement")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--profile", o.base.profile, "One more run, timed node by node");
  app.add_option("--against", o.against,
                 "llama.cpp: run the linked one on the same rows, alternating")
      ->check(CLI::IsMember({"llama.cpp"}).description(""));
  app.add_option("--ubatch", o.base.n_ubatch,
                 "llama.cpp's micro-batch; 0: the size of our largest block")
      ->check(CLI::Range(0, 1 << 16))
      ->capture_default_str();
  app.add_flag("--isolate,!--no-isolate", o.isolate,
               "A process for each measurement, so that peaks are its own (default)");
  app.add_option("--out", o.out, "Append JSON lines to a file, - for stdout")
      ->capture_default_str();
  app.add_flag("-q,--quiet", o.quiet, "No table on standard error");
}

}  // namespace

Command add_bench_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "Measure time and memory over a sweep");
  auto o = std::make_shared<BenchOptions>();
  auto run_id = std::make_shared<std::string>();
  add_model_options(*command, *o);
  add_input_options(*command, *o);
  add_setting_options(*command, *o);
  add_measuring_options(*command, *o);
  // For the child of an isolated measurement.
  command->add_option("--point", o->point)->group("");
  command->add_option("--run-id", *run_id)->group("");
  return {command, [o, run_id] { return run_bench(*o, *run_id); }};
}

}  // namespace plateau::cli

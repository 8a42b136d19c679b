#include "cli/run_options.h"

#include <charconv>
#include <map>

#include "base/byte_size.h"
#include "base/check.h"
#include "cli/text_file.h"
#include "cli/validators.h"
#include "kv/policy.h"

namespace plateau::cli {
namespace {

const std::map<std::string, CacheType> kCacheTypes = {
    {"f16", CacheType::kF16}, {"q8_0", CacheType::kQ8_0}, {"f32", CacheType::kF32}};
const std::map<std::string, Pool> kPools = {
    {"avg", Pool::kAverage}, {"max", Pool::kMax}, {"none", Pool::kNone}};
const std::map<std::string, PoolAxis> kPoolAxes = {{"cache", PoolAxis::kCache},
                                                   {"grid", PoolAxis::kGrid}};
const std::map<std::string, GroupReduction> kGroups = {{"mean", GroupReduction::kMean},
                                                       {"max", GroupReduction::kMax}};
const std::map<std::string, ProxyPosition> kProxyPositions = {
    {"true", ProxyPosition::kTrue}, {"after-block", ProxyPosition::kAfterBlock}};
const std::map<std::string, BlockUnit> kBlockUnits = {
    {"tile", BlockUnit::kTile}, {"row", BlockUnit::kRow}, {"frame", BlockUnit::kFrame}};

template <typename T>
std::string name_of(const std::map<std::string, T>& names, T value) {
  for (const auto& [name, named] : names) {
    if (named == value) return name;
  }
  return "";
}

template <typename T>
void add_choice(CLI::App& app, const std::string& option, T& value,
                const std::map<std::string, T>& names, const std::string& help) {
  app.add_option_function<std::string>(
         option, [&value, &names](const std::string& name) { value = names.at(name); }, help)
      ->check(CLI::IsMember(names).description(""))
      ->default_str(name_of(names, value));
}

void add_question_options(CLI::App& app, RunOptions& o) {
  app.add_option("-m,--model", o.engine.model_path, "Text model (GGUF)")->required();
  app.add_option("--mmproj", o.engine.mmproj_path, "Vision projector (GGUF)");
  // CLI11 calls back at each occurrence, so that the order among these is the command line's.
  const auto add_medium = [&](const char* option, const char* help, auto make) {
    app.add_option_function<std::string>(
           option, [&o, make](const std::string& path) { o.media.emplace_back(make(path)); }, help)
        ->trigger_on_parse()
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  };
  add_medium("--image", "A picture; pictures and films may be repeated, and keep their order",
             [](const std::string& path) { return ImagePart{path}; });
  add_medium("--video", "A film", [](const std::string& path) { return VideoPart{path}; });
  add_medium("--frames",
             "A film as a text file that names pictures (PATH, or PATH<TAB>SECONDS, on each line), "
             "or a folder of pictures",
             [](const std::string& path) {
               return VideoPart{path, /*is_frame_list=*/true};
             });
  auto* prompt = app.add_option("-p,--prompt", o.prompt, "The question");
  app.add_option("-f,--file", o.prompt_file, "Read the question from a file, - for stdin")
      ->excludes(prompt);
  app.add_option("--system", o.system, "System message");
  app.add_option("--chat-template-file", o.chat_template_file,
                 "Jinja template used instead of the model's own");
}

void add_sampling_options(CLI::App& app, RunOptions& o) {
  SamplingOptions& sampling = o.request.sampling;
  app.add_option("-n,--n-predict", o.request.max_new_tokens, "Most tokens to answer with")
      ->capture_default_str();
  app.add_option("--temp", sampling.temperature, "0: always the likeliest token")
      ->capture_default_str();
  app.add_option("--top-k", sampling.top_k, "0: all")->capture_default_str();
  app.add_option("--top-p", sampling.top_p, "1: all")->capture_default_str();
  app.add_option("--min-p", sampling.min_p, "0: all")->capture_default_str();
  app.add_option("--seed", sampling.seed, "Of the random choice")
      ->check(whole_number())
      ->capture_default_str();
}

void add_picture_options(CLI::App& app, ImageOptions& image) {
  app.add_option("--max-tiles", image.max_tiles,
                 "Cap on tiles per picture; 0: as many as native detail needs")
      ->capture_default_str();
  app.add_option(
         "--image-min-tokens", image.min_tokens,
         "Enlarge a picture of fewer tokens (families of native size); 0: as the model does")
      ->capture_default_str();
  app.add_option("--image-max-tokens", image.max_tokens,
                 "Shrink a picture of more tokens; 0: native size")
      ->capture_default_str();
  app.add_option("--max-visual-tokens", image.max_visual_tokens,
                 "Lower the resolution until all pictures and films fit; 0: no cap")
      ->capture_default_str();
  app.add_flag_callback(
      "--no-thumbnail", [&image] { image.thumbnail = false; },
      "Do not append the whole picture as one more tile");
  app.add_option("--max-image-pixels", image.max_pixels, "Refuse larger pictures from their header")
      ->capture_default_str();
}

void add_film_options(CLI::App& app, VideoOptions& video) {
  app.add_option("--fps", video.fps, "Frames looked at per second of film")->capture_default_str();
  app.add_option("--max-frames", video.max_frames,
                 "Of a film with more frames, so many spread evenly; 0: no cap")
      ->capture_default_str();
  app.add_option("--max-video-tokens", video.max_tokens,
                 "Lower the size of a film's frames until they fit (families of native size), else "
                 "their number; 0: no cap")
      ->capture_default_str();
  app.add_option("--max-frame-tokens", video.max_frame_tokens,
                 "Shrink a film's frames of more tokens (families of native size); 0: native size")
      ->capture_default_str();
  app.add_option("--video-start", video.start_s, "Look at films from this second on")
      ->capture_default_str();
  app.add_option("--video-end", video.end_s, "Look at films up to this second; 0: to the end")
      ->capture_default_str();
}

void add_cache_options(CLI::App& app, RunOptions& o) {
  KvOptions& kv = o.request.kv;
  app.add_option("--kv-budget", o.kv_budget,
                 "Tokens that the cache keeps per layer and head, or full")
      ->capture_default_str();
  std::string names = kv::kFullPolicy;
  for (const kv::PolicyEntry& entry : kv::policies()) names += fmt::format(", {}", entry.name);
  app.add_option("--policy", kv.policy, "What the cache keeps: " + names)->capture_default_str();
  app.add_option(
         "--block", o.block,
         "Tokens per prefill block, or tile, row, frame; 0: as many whole tiles as fit 1024 "
         "tokens")
      ->capture_default_str();
  app.add_flag("--strict", kv.strict, "Evict before each block: the arena is the budget alone");
  app.add_flag_callback(
      "--no-bulk", [&kv] { kv.bulk = false; },
      "Do not run what fits the budget in larger blocks first");
  add_policy_options(app, kv.policy_options);
  add_proxy_option(app, kv.policy_options);
  add_cache_type_options(app, o.engine);
  app.add_option("--encoder-memory", o.encoder_memory,
                 "What the vision encoder may hold beside its weights, 512MiB say; a picture that "
                 "needs more is encoded in bands");
}

void add_report_options(CLI::App& app, RunOptions& o) {
  app.add_option("--stats-json", o.stats_json, "Write figures to a file, - for stdout");
  app.add_option("--trace-json", o.trace_json,
                 "Write the kept tokens per block, layer and kv head to a file");
  app.add_option("--heatmap", o.heatmap,
                 "Write the first picture with what was remembered of it to a PNG file");
  app.add_flag("-q,--quiet", o.quiet, "Only the answer and errors");
}

int parse_count(const std::string& text, const char* option, const char* expected) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw_error(ErrorCode::kInvalidArgument, "[{}] expected {}, got {}", option, expected, text);
  }
  return value;
}

}  // namespace

void add_policy_options(CLI::App& app, PolicyOptions& options) {
  app.add_option("--window", options.window, "Proxy queries: the last tokens of the question")
      ->capture_default_str();
  add_choice(app, "--pool", options.pool, kPools, "Smoothing of scores: avg, max or none");
  app.add_option("--kernel", options.pool_kernel, "Its width, odd")->capture_default_str();
  add_choice(app, "--pool-axis", options.pool_axis, kPoolAxes,
             "Over neighbours in the cache or on the picture's grid");
  add_choice(app, "--group", options.group, kGroups,
             "How the query heads of a kv head share scores: mean or max");
  app.add_option("--policy-seed", options.seed, "Of policy random")
      ->check(whole_number())
      ->capture_default_str();
}

void add_proxy_option(CLI::App& app, PolicyOptions& options) {
  add_choice(app, "--proxy-position", options.proxy_position, kProxyPositions,
             "Where proxy queries stand: true or after-block");
}

void add_cache_type_options(CLI::App& app, EngineOptions& engine) {
  add_choice(app, "--cache-type-k", engine.cache_type_k, kCacheTypes,
             "f16, q8_0 or f32; also -ctk");
  add_choice(app, "--cache-type-v", engine.cache_type_v, kCacheTypes,
             "f16, q8_0 or f32; also -ctv");
}

void add_machine_options(CLI::App& app, EngineOptions& engine) {
  app.add_option("-t,--threads", engine.n_threads, "CPU threads; 0: all usable cores")
      ->capture_default_str();
  app.add_option("--device", engine.device, "Compute device; default: first GPU, else CPU");
  app.add_option("--n-gpu-layers", engine.n_gpu_layers, "Layers on the device; -1: all; also -ngl")
      ->check(gpu_layers())
      ->capture_default_str();
  app.add_option("--encoder-batch", engine.encoder_batch,
                 "Tiles encoded at once; 0: as many as make 1024 patches")
      ->capture_default_str();
}

int parse_kv_budget(const std::string& text) {
  if (text == kv::kFullPolicy) return 0;
  const int budget = parse_count(text, "--kv-budget", "a number of tokens or full");
  if (budget == 0) {
    throw_error(ErrorCode::kInvalidArgument,
                "[--kv-budget] expected at least 1 token or full, got 0");
  }
  return budget;
}

void add_request_options(CLI::App& app, RunOptions& options) {
  add_question_options(app, options);
  add_sampling_options(app, options);
  add_picture_options(app, options.request.image);
  add_film_options(app, options.request.video);
  add_cache_options(app, options);
  add_machine_options(app, options.engine);
  app.add_option("--memory", options.memory,
                 "Stay below this, 6GiB say: smaller steps first, then a KV budget, else exit 4");
}

void add_run_options(CLI::App& app, RunOptions& options) {
  add_request_options(app, options);
  add_report_options(app, options);
}

Request make_request(const RunOptions& o) {
  Request request = o.request;
  request.want_kept_share = !o.heatmap.empty();
  request.kv.budget = parse_kv_budget(o.kv_budget);
  if (const auto unit = kBlockUnits.find(o.block); unit != kBlockUnits.end()) {
    request.kv.block_unit = unit->second;
  } else {
    request.kv.block = parse_count(o.block, "--block", "a number of tokens, tile, row or frame");
  }
  Message user{"user", {}};
  user.content = o.media;
  const std::string text = o.prompt_file.empty() ? o.prompt : read_text_file(o.prompt_file);
  if (text.empty() && o.media.empty()) {
    throw_error(ErrorCode::kInvalidArgument,
                "[run] expected a question, a picture or a film, got none; try -p \"...\"");
  }
  if (!text.empty()) user.content.emplace_back(TextPart{text});
  if (!o.system.empty()) request.messages.push_back({"system", {TextPart{o.system}}});
  request.messages.push_back(std::move(user));
  return request;
}

EngineOptions make_engine_options(const RunOptions& o) {
  EngineOptions engine = o.engine;
  if (o.encoder_memory) {
    engine.encoder_memory = parse_byte_size(*o.encoder_memory, "--encoder-memory");
  }
  if (!o.chat_template_file.empty()) engine.chat_template = read_text_file(o.chat_template_file);
  return engine;
}

int64_t memory_bound(const RunOptions& o) {
  return o.memory ? parse_byte_size(*o.memory, "--memory") : 0;
}

}  // namespace plateau::cli

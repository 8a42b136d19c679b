#include "plateau/engine.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/stopwatch.h"
#include "base/utf8.h"
#include "engine/block_planner.h"
#include "engine/media_plan.h"
#include "engine/prefill.h"
#include "engine/prompt_builder.h"
#include "graph/block_runner.h"
#include "model/chat_template.h"
#include "model/sampler.h"

namespace plateau {
namespace {

constexpr int kDefaultBlock = 1024;
constexpr int kMaxBlock = 1 << 16;

void require(bool condition, const char* option, const char* expected, int64_t got) {
  if (!condition) {
    throw_error(ErrorCode::kInvalidArgument, "[{}] expected {}, got {}", option, expected, got);
  }
}

void validate(const EngineOptions& options) {
  require(options.n_threads >= 0 && options.n_threads <= 512, "-t", "0 to 512 threads",
          options.n_threads);
  require(options.encoder_batch >= 1 && options.encoder_batch <= 256, "--encoder-batch",
          "1 to 256 tiles", options.encoder_batch);
  require(options.block >= 0 && options.block <= kMaxBlock, "--block", "0 to 65536 tokens",
          options.block);
}

void validate(const Request& request) {
  require(request.max_new_tokens >= 1, "-n", "at least 1 token", request.max_new_tokens);
  require(request.image.max_tiles >= 0, "--max-tiles", "0 or more tiles", request.image.max_tiles);
  require(request.image.max_pixels >= 1, "--max-image-pixels", "at least 1 pixel",
          request.image.max_pixels);
}

/// The poll may refer to the caller's variables: it must not outlive the request.
class CancelPollScope {
 public:
  CancelPollScope(model::Backends& backends, std::function<bool()> poll) : backends_(backends) {
    backends_.set_cancel_poll(std::move(poll));
  }
  ~CancelPollScope() { backends_.set_cancel_poll({}); }
  CancelPollScope(const CancelPollScope&) = delete;
  CancelPollScope& operator=(const CancelPollScope&) = delete;

 private:
  model::Backends& backends_;
};

}  // namespace

struct Engine::Impl {
  EngineOptions options;
  model::Backends backends;
  model::LanguageModel language_model;
  std::optional<vision::Encoder> encoder;
  std::optional<model::ChatTemplate> chat_template;

  Impl(const EngineOptions& engine_options, const std::function<bool(float)>& on_progress);

  Answer run(const Request& request, const RequestCallbacks& callbacks);

 private:
  int block_size() const;
  void plan_usage(const engine::PromptPlan& prompt, const std::vector<engine::PlannedImage>& images,
                  Usage& usage) const;
  void decode(const Request& request, const RequestCallbacks& callbacks,
              const engine::PromptPlan& prompt, engine::PrefillResult prefilled,
              graph::BlockRunner& runner, model::Sampler& sampler, const Stopwatch& since_start,
              Answer& answer);
};

Engine::Impl::Impl(const EngineOptions& engine_options,
                   const std::function<bool(float)>& on_progress)
    : options(engine_options),
      backends(model::Device::find(engine_options.device),
               engine_options.n_threads > 0 ? engine_options.n_threads : model::usable_cores()),
      language_model(model::LanguageModel::load(engine_options.model_path,
                                                {.device = backends.device(),
                                                 .n_gpu_layers = engine_options.n_gpu_layers,
                                                 .on_progress = on_progress})) {
  if (!options.mmproj_path.empty()) {
    encoder.emplace(options.mmproj_path, backends);
    const int n_embd = language_model.config().n_embd;
    if (encoder->config().n_embd_out != n_embd) {
      throw_error(
          ErrorCode::kUnsupported,
          "[{}] expected a projector to width {} (that of {}), got {}; the two files do not "
          "belong together",
          options.mmproj_path, n_embd, options.model_path, encoder->config().n_embd_out);
    }
  }
  const std::string& source =
      options.chat_template.empty() ? language_model.chat_template() : options.chat_template;
  if (source.empty()) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected key tokenizer.chat_template, found none; try --chat-template-file",
                options.model_path);
  }
  chat_template.emplace(source, language_model.vocab().bos_text(),
                        language_model.vocab().eos_text());
}

int Engine::Impl::block_size() const {
  if (options.block > 0) return options.block;
  const int unit = encoder ? encoder->config().tokens_per_tile() : 1;
  return std::max(1, kDefaultBlock / unit) * unit;
}

void Engine::Impl::plan_usage(const engine::PromptPlan& prompt,
                              const std::vector<engine::PlannedImage>& images, Usage& usage) const {
  usage.prompt_tokens = prompt.n_tokens();
  usage.text_tokens = prompt.n_text_tokens();
  usage.visual_tokens = prompt.n_visual_tokens();
  for (const engine::PlannedImage& image : images) {
    usage.images.push_back(engine::report_of(image, encoder->config()));
    usage.images.back().tokens_kept = usage.images.back().tokens_made;
    const std::string note = engine::resize_note(usage.images.back());
    if (!note.empty()) usage.notes.push_back(note);
  }
  const int n_ctx_train = language_model.config().n_ctx_train;
  if (prompt.next_position() > n_ctx_train) {
    usage.notes.push_back(
        fmt::format("the prompt has {} positions, the model was trained for {}: quality may suffer",
                    prompt.next_position(), n_ctx_train));
  }
}

Answer Engine::Impl::run(const Request& request, const RequestCallbacks& callbacks) {
  const Stopwatch since_start;
  validate(request);
  model::Sampler sampler(request.sampling);

  std::vector<engine::PlannedImage> images;
  std::vector<engine::ImageLayout> layouts;
  if (encoder) {
    images = engine::plan_images(request, encoder->config());
    for (const auto& image : images) layouts.push_back(engine::layout_of(image, encoder->config()));
  } else {
    for (const Message& message : request.messages) {
      for (const ContentPart& part : message.content) {
        if (std::holds_alternative<ImagePart>(part)) {
          throw_error(
              ErrorCode::kInvalidArgument,
              "[--image] expected a vision projector for a picture, got none; try --mmproj");
        }
      }
    }
  }
  const engine::PromptPlan prompt =
      engine::build_prompt(request.messages, layouts, *chat_template, language_model.vocab());
  const std::vector<engine::BlockPlan> blocks = engine::plan_blocks(prompt, block_size());

  const int64_t n_arena = prompt.n_tokens() + request.max_new_tokens;
  if (n_arena > INT32_MAX / 2) {
    throw_error(ErrorCode::kResourceExhausted, "[prompt] expected at most {} tokens, got {}",
                INT32_MAX / 2, n_arena);
  }

  Answer answer;
  Usage& usage = answer.usage;
  plan_usage(prompt, images, usage);
  usage.blocks = static_cast<int64_t>(blocks.size());
  kv::KvCache cache(language_model, static_cast<int>(n_arena), options.cache_type_k,
                    options.cache_type_v);
  usage.kv_arena_tokens = cache.n_slot();
  usage.kv_bytes = cache.n_bytes();
  if (callbacks.on_planned) callbacks.on_planned(usage);

  const CancelPollScope cancel_poll(backends, callbacks.should_cancel);
  graph::BlockRunner runner(language_model, backends, cache);
  std::optional<engine::VisualSource> visuals;
  if (!images.empty()) {
    visuals.emplace(*encoder, images, engine::to_limits(request.image), options.encoder_batch);
  }
  const auto on_block = [&](int64_t tokens_done) {
    if (callbacks.on_progress) {
      callbacks.on_progress({.tiles_done = visuals ? visuals->tiles_done() : 0,
                             .tiles = prompt.n_visual_units(),
                             .tokens_done = tokens_done,
                             .tokens = prompt.n_tokens()});
    }
    if (callbacks.should_cancel && callbacks.should_cancel()) {
      throw_error(ErrorCode::kCancelled, "interrupted");
    }
  };
  engine::PrefillResult prefilled =
      engine::prefill(prompt, blocks, runner, visuals ? &*visuals : nullptr, on_block);
  usage.prefill_ms = prefilled.prefill_ms;
  usage.encode_ms = visuals ? visuals->encode_ms() : 0;
  usage.kv_kept_max = prefilled.n_past;
  usage.encoder_bytes = encoder ? encoder->compute_bytes() : 0;
  decode(request, callbacks, prompt, std::move(prefilled), runner, sampler, since_start, answer);
  usage.compute_bytes = runner.compute_bytes();
  return answer;
}

void Engine::Impl::decode(const Request& request, const RequestCallbacks& callbacks,
                          const engine::PromptPlan& prompt, engine::PrefillResult prefilled,
                          graph::BlockRunner& runner, model::Sampler& sampler,
                          const Stopwatch& since_start, Answer& answer) {
  Utf8Stream text;
  const auto emit = [&](const std::string& piece) {
    if (piece.empty()) return;
    answer.text += piece;
    if (callbacks.on_text) callbacks.on_text(piece);
  };
  std::vector<float> logits = std::move(prefilled.logits);
  int n_past = prefilled.n_past;
  int64_t position = prompt.next_position();
  Usage& usage = answer.usage;
  answer.stop_reason = StopReason::kMaxTokens;
  std::optional<Stopwatch> since_first;
  for (int i = 0; i < request.max_new_tokens; ++i) {
    const model::Token token = sampler.sample(logits);
    if (!since_first) {
      usage.ttft_ms = since_start.ms();
      since_first.emplace();
    }
    ++usage.decode_tokens;
    if (language_model.vocab().is_end_of_generation(token)) {
      answer.stop_reason = StopReason::kEndOfAnswer;
      break;
    }
    emit(text.push(language_model.vocab().piece(token)));
    if (i + 1 == request.max_new_tokens) break;
    const std::vector<float> row = runner.embed(std::span(&token, 1));
    const auto pos = static_cast<int32_t>(position++);
    logits = runner
                 .run({.embeddings = row,
                       .positions = std::span(&pos, 1),
                       .n_cached = n_past++,
                       .want_logits = true})
                 .logits;
    if (callbacks.should_cancel && callbacks.should_cancel()) {
      throw_error(ErrorCode::kCancelled, "interrupted");
    }
  }
  emit(text.flush());
  const double ms = since_first->ms();
  const int64_t steps = usage.decode_tokens - 1;  // the first token came out of prefill
  if (steps > 0 && ms > 0) usage.decode_tok_s = 1000.0 * static_cast<double>(steps) / ms;
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

Engine Engine::open(const EngineOptions& options, const std::function<bool(float)>& on_progress) {
  validate(options);
  return Engine(std::make_unique<Impl>(options, on_progress));
}

Answer Engine::run(const Request& request, const RequestCallbacks& callbacks) {
  return impl_->run(request, callbacks);
}

}  // namespace plateau

#include "plateau/engine.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/stopwatch.h"
#include "engine/continuation.h"
#include "engine/decode.h"
#include "engine/embedding_cache.h"
#include "engine/loaded_model.h"
#include "engine/media_plan.h"
#include "engine/prefill.h"
#include "engine/request_plan.h"
#include "engine/usage_report.h"
#include "media/vips_session.h"
#include "model/sampler.h"

namespace plateau {
namespace {

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

void throw_if_cancelled(const RequestCallbacks& callbacks) {
  if (callbacks.should_cancel && callbacks.should_cancel()) {
    throw_error(ErrorCode::kCancelled, "interrupted");
  }
}

/// What was only seen while films were read.
void report_films(const engine::VisualSource& visuals, Usage& usage) {
  usage.media_bytes = visuals.film_bytes();
  for (const auto& damage : visuals.film_damage()) {
    ImageReport& image = usage.images[static_cast<size_t>(damage.medium)];
    image.video->n_damaged = damage.n_damaged;
    usage.notes.push_back(fmt::format("{}: {}", image.path, damage.text));
  }
}

Answer run_request(const Request& request, const RequestCallbacks& callbacks,
                   engine::LoadedModel& loaded, engine::EmbeddingCache& embeddings) {
  const Stopwatch since_start;
  model::Sampler sampler(request.sampling);
  engine::RequestPlan plan = engine::plan_request(request, loaded);
  const int n_encoded_at_once = plan.images.empty() ? 1 : loaded.encoder_batch();
  const engine::PromptTokens tokens(plan.prompt, plan.protection);
  engine::Sequence sequence(loaded.language_model, loaded.backends,
                            {.n_arena = plan.budget.n_arena,
                             .cache_type_k = loaded.options.cache_type_k,
                             .cache_type_v = loaded.options.cache_type_v,
                             .policy = plan.policy.get(),
                             .policy_options = request.kv.policy_options},
                            tokens);
  Answer answer;
  Usage& usage = answer.usage;
  usage = engine::planned_usage(request, plan, loaded);
  if (callbacks.on_planned) callbacks.on_planned(usage);

  const CancelPollScope cancel_poll(loaded.backends, callbacks.should_cancel);
  std::optional<engine::VisualSource> visuals;
  std::optional<engine::CachedSource> units;
  Progress progress = {.tiles = plan.prompt.n_visual_units(), .tokens = plan.prompt.n_tokens()};
  const auto report_progress = [&](double encoded_share) {
    progress.tiles_done = visuals ? visuals->units_done() : 0;
    progress.encoded_share = encoded_share;
    if (callbacks.on_progress) callbacks.on_progress(progress);
  };
  if (!plan.images.empty()) {
    visuals.emplace(*loaded.encoder, plan.images, engine::to_limits(request.image),
                    n_encoded_at_once, report_progress, callbacks.should_cancel);
    units.emplace(embeddings, *visuals, plan.images);
  }
  if (plan.policy && plan.policy->needs_question()) {
    sequence.set_proxies(
        engine::question_rows(plan.prompt, sequence.runner(), request.kv.policy_options.window));
  }
  int64_t n_before = 0;
  const auto on_block = [&](int block, int64_t tokens_done) {
    usage.kv_kept_max = std::max<int64_t>(usage.kv_kept_max, sequence.n_held());
    if (callbacks.on_block_kept) {
      callbacks.on_block_kept(engine::trace_of(sequence, block, n_before, tokens_done));
    }
    n_before = tokens_done;
    progress.tokens_done = tokens_done;
    report_progress(/*encoded_share=*/1);
    throw_if_cancelled(callbacks);
  };
  engine::PrefillResult prefilled = engine::prefill(plan.prompt, plan.blocks, plan.budget, sequence,
                                                    units ? &*units : nullptr, on_block);
  usage.prefill_ms = prefilled.prefill_ms;
  usage.encode_ms = visuals ? visuals->encode_ms() : 0;
  usage.encoded_tiles = visuals ? visuals->units_done() : 0;
  usage.encoder_bytes = loaded.encoder ? loaded.encoder->peak_bytes() : 0;
  if (visuals) report_films(*visuals, usage);
  units.reset();
  visuals.reset();  // the last unit's embeddings are in the cache now
  if (!plan.images.empty()) {
    usage.media_bytes = std::max(usage.media_bytes, media::peak_library_bytes());
  }
  usage.score_ms = sequence.eviction_times().score_ms;
  usage.select_ms = sequence.eviction_times().select_ms;
  usage.compact_ms = sequence.eviction_times().compact_ms;
  usage.evicted_tokens = usage.prompt_tokens - sequence.n_held();
  engine::report_kept(plan, sequence, request.want_kept_share, usage);
  engine::report_regions(plan, sequence, request.regions, usage);
  const Stopwatch since_prefilled;
  answer.continuations = engine::continuation_likelihoods(prefilled.logits, plan.continuations,
                                                          plan.prompt.next_position(), sequence);
  const double continuations_ms = since_prefilled.ms();

  const engine::DecodeResult decoded = engine::decode(
      std::move(prefilled.logits),
      {.max_new_tokens = request.max_new_tokens,
       .first_position = plan.prompt.next_position(),
       .n_recent = plan.n_recent},
      plan.budget, loaded.language_model.vocab(), sampler, sequence,
      [&] { usage.ttft_ms = since_start.ms() - continuations_ms; },
      [&](const std::string& text) {
        throw_if_cancelled(callbacks);
        answer.text += text;
        if (callbacks.on_text && !text.empty()) callbacks.on_text(text);
      });
  answer.stop_reason = decoded.stop_reason;
  usage.decode_tokens = decoded.n_tokens;
  const int64_t n_steps = decoded.n_tokens - 1;  // the first token came out of prefill
  if (n_steps > 0 && decoded.ms > 0) {
    usage.decode_tok_s = 1000.0 * static_cast<double>(n_steps) / decoded.ms;
  }
  usage.compute_bytes = sequence.runner().compute_bytes();
  return answer;
}

}  // namespace

struct Engine::Impl {
  Impl(const EngineOptions& options, const std::function<bool(float)>& on_progress)
      : loaded(options, on_progress), embeddings(options.embedding_cache_bytes) {}

  engine::LoadedModel loaded;
  engine::EmbeddingCache embeddings;
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

Engine Engine::open(const EngineOptions& options, const std::function<bool(float)>& on_progress) {
  return Engine(std::make_unique<Impl>(options, on_progress));
}

Answer Engine::run(const Request& request, const RequestCallbacks& callbacks) {
  return run_request(request, callbacks, impl_->loaded, impl_->embeddings);
}

}  // namespace plateau

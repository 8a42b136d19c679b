#include "bench/plateau_run.h"

#include <algorithm>

#include "base/check.h"
#include "base/stopwatch.h"
#include "bench/input.h"
#include "engine/prefill.h"

namespace plateau::bench {
namespace {

double decode(const BenchPoint& point, const engine::RequestPlan& plan, int n_vocab,
              const CancelPoll& should_cancel, engine::Sequence& sequence) {
  const std::vector<model::Token> tokens = random_tokens(point.n_decode, n_vocab);
  const Stopwatch watch;
  for (int i = 0; i < point.n_decode; ++i) {
    if (should_cancel && should_cancel()) throw_error(ErrorCode::kCancelled, "interrupted");
    const engine::Rows row = {
        sequence.runner().embed(std::span(tokens).subspan(static_cast<size_t>(i), 1)),
        {kv::Position::sequential(static_cast<int32_t>(plan.prompt.next_position() + i))}};
    const int n_past = sequence.n_held() + 1;
    const int n_keep = n_past >= plan.budget.n_decode_limit ? plan.budget.n_decode_keep : n_past;
    (void)sequence.append_generated(row, n_keep, plan.n_recent);
  }
  return watch.ms();
}

}  // namespace

PlateauRun run_plateau(const BenchPoint& point, engine::LoadedModel& loaded,
                       const CancelPoll& should_cancel, NodeTimes* times) {
  const Stopwatch watch;
  engine::RequestPlan plan = plan_point(point, loaded);
  const model::ModelConfig& config = loaded.language_model.config();
  const engine::PromptTokens tokens(plan.prompt, plan.protection);
  engine::Sequence sequence(loaded.language_model, loaded.backends,
                            {.n_arena = plan.budget.n_arena,
                             .cache_type_k = loaded.options.cache_type_k,
                             .cache_type_v = loaded.options.cache_type_v,
                             .policy = plan.policy.get(),
                             .policy_options = point.request.kv.policy_options},
                            tokens);
  const std::unique_ptr<BenchUnits> units = open_units(point, plan, loaded);
  if (plan.policy && plan.policy->needs_question()) {
    sequence.set_proxies(engine::question_rows(plan.prompt, sequence.runner(),
                                               point.request.kv.policy_options.window));
  }
  if (times != nullptr) {
    sequence.runner().set_tap(times->tap());
    times->start_block();
  }
  engine::PrefillResult prefilled = engine::prefill(
      plan.prompt, plan.blocks, plan.budget, sequence, units.get(), [&](int, int64_t) {
        if (should_cancel && should_cancel()) throw_error(ErrorCode::kCancelled, "interrupted");
        if (times != nullptr) times->start_block();
      });

  PlateauRun run;
  run.ttft_ms = watch.ms() - units->drawing_ms();
  run.encode_ms = units->encode_ms();
  run.prefill_ms = prefilled.prefill_ms;
  run.score_ms = sequence.eviction_times().score_ms;
  run.select_ms = sequence.eviction_times().select_ms;
  run.compact_ms = sequence.eviction_times().compact_ms;
  run.logits = std::move(prefilled.logits);
  run.n_prompt = plan.prompt.n_tokens();
  run.n_visual = plan.prompt.n_visual_tokens();
  run.n_blocks = static_cast<int64_t>(plan.blocks.size());
  for (const engine::BlockPlan& block : plan.blocks) {
    run.n_largest_block = std::max(run.n_largest_block, block.n_tokens());
  }
  run.n_kept = sequence.n_held();
  run.n_arena = sequence.cache().n_slot();
  run.planned_kv_bytes = config.kv_bytes_per_token(kv::to_ggml(loaded.options.cache_type_k),
                                                   kv::to_ggml(loaded.options.cache_type_v)) *
                         kv::padded_slots(plan.budget.n_arena);
  run.kv_bytes = sequence.cache().n_bytes();
  run.encoder_bytes = loaded.encoder ? loaded.encoder->peak_bytes() : 0;
  if (times != nullptr) sequence.runner().set_tap({});
  run.decode_ms = decode(point, plan, config.n_vocab, should_cancel, sequence);
  run.compute_bytes = sequence.runner().compute_bytes();
  return run;
}

}  // namespace plateau::bench

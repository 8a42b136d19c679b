#include "bench/measure.h"

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "base/memory.h"
#include "bench/input.h"
#include "bench/llama_run.h"
#include "engine/memory_plan.h"
#include "engine/sequence.h"

namespace plateau::bench {
namespace {

int64_t file_bytes(const std::string& path) {
  std::error_code ec;
  const auto size = std::filesystem::file_size(path, ec);
  return ec ? 0 : static_cast<int64_t>(size);
}

/// Pages the weights in. Small, so that it does not raise the peak; a picture is not warmed up
/// with.
void warm_up(const BenchPoint& point, engine::LoadedModel& loaded,
             const CancelPoll& should_cancel) {
  if (point.input == InputKind::kImage) return;
  BenchPoint small = point;
  const int64_t most = point.input == InputKind::kTokens ? kTokensPerUnit : 1;
  small.n_input = std::min(point.n_input, most);
  small.n_decode = std::min(point.n_decode, 1);
  small.request.kv = {};
  (void)run_plateau(small, loaded, should_cancel, /*times=*/nullptr);
}

/// Embeddings of the prompt's text: [n_embd, n_text_tokens].
std::vector<float> text_rows(const engine::PromptPlan& prompt, const engine::LoadedModel& loaded) {
  const kv::TokenList no_tokens({});
  engine::Sequence sequence(loaded.language_model, loaded.backends, {.n_arena = 1}, no_tokens);
  std::vector<float> rows;
  for (const engine::Piece& piece : prompt.pieces()) {
    if (piece.kind == engine::PieceKind::kVisual) continue;
    const std::vector<float> more = sequence.runner().embed(piece.tokens);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

/// llama.cpp's side, made when the first of ours is done, so that it does not raise our peak.
class LlamaSide {
 public:
  LlamaSide(const BenchPoint& point, engine::LoadedModel& loaded, int n_ubatch,
            const CancelPoll& should_cancel)
      : point_(point),
        loaded_(loaded),
        plan_(plan_point(point, loaded)),
        text_rows_(text_rows(plan_.prompt, loaded)),
        n_ubatch_(n_ubatch),
        llama_(point, plan_, n_ubatch, should_cancel) {}

  void run() {
    const std::unique_ptr<BenchUnits> units = open_units(point_, plan_, loaded_);
    const LlamaTimes times = llama_.run(text_rows_, *units);
    ttft_ms_.push_back(times.ttft_ms);
    decode_ms_.push_back(times.decode_ms);
  }

  LlamaMeasurement result(const std::vector<double>& our_ttft_ms,
                          const std::vector<double>& our_decode_ms) const {
    LlamaMeasurement result = {.n_ubatch = n_ubatch_,
                               .ttft_ms = spread_of(ttft_ms_),
                               .decode_tok_s = std::nullopt,
                               .ttft_ratio = spread_of_ratios(ttft_ms_, our_ttft_ms),
                               .decode_ratio = std::nullopt};
    if (point_.n_decode > 0) {
      result.decode_tok_s = tokens_per_second(point_.n_decode, decode_ms_);
      result.decode_ratio = spread_of_ratios(decode_ms_, our_decode_ms);
    }
    return result;
  }

  static Spread tokens_per_second(int n, const std::vector<double>& ms) {
    std::vector<double> rates;
    for (const double value : ms) rates.push_back(1000.0 * n / value);
    return spread_of(std::move(rates));
  }

 private:
  const BenchPoint& point_;
  engine::LoadedModel& loaded_;
  engine::RequestPlan plan_;
  std::vector<float> text_rows_;
  int n_ubatch_;
  LlamaRun llama_;
  std::vector<double> ttft_ms_;
  std::vector<double> decode_ms_;
};

ProfileTimes profile(const BenchPoint& point, engine::LoadedModel& loaded,
                     const CancelPoll& should_cancel) {
  NodeTimes times;
  BenchPoint once = point;
  once.n_decode = 0;
  const PlateauRun run = run_plateau(once, loaded, should_cancel, &times);
  return {.linear_ms = times.linear_ms(),
          .attention_ms = times.attention_ms(),
          .signals_ms = times.signals_ms(),
          .other_ms = times.other_ms(),
          .prefill_ms = run.prefill_ms};
}

/// What the engine's plan says, before the first run.
void add_plan(const BenchPoint& point, engine::LoadedModel& loaded, Measurement& result) {
  const engine::RequestPlan plan = plan_point(point, loaded);
  Request request = point.request;
  request.max_new_tokens = std::max(1, point.n_decode);
  int64_t n_anon_bytes = 0;
  for (const MemoryPart& part : engine::plan_memory(request, plan, loaded)) {
    // Random frames are drawn, not read.
    if (point.input == InputKind::kFrames && part.name == "media") continue;
    if (part.name == "compute") result.planned_compute_bytes += part.bytes;
    // Weights that are not mapped are loaded by now, and so in "runtime".
    const bool is_loaded = part.mapped || part.name == "weights" || part.name == "projector";
    if (!is_loaded && part.device == model::Device::cpu().name()) n_anon_bytes += part.bytes;
  }
  if (point.input == InputKind::kTiles) return;
  if (point.input == InputKind::kFrames) {
    // Those of a slice; a batch of tiles is counted with the encoder's.
    const engine::PlannedImage& film = plan.images.front();
    n_anon_bytes +=
        int64_t{film.film->frames_per_slice} * film.used_width() * film.used_height() * 3;
  }
  result.planned_peak_anon_bytes = n_anon_bytes;
}

void validate(const BenchPoint& point) {
  if (point.against_llama_cpp && point.input != InputKind::kTokens) {
    throw_error(
        ErrorCode::kInvalidArgument,
        "[--against] expected --tokens: llama.cpp is given the same rows, without an encoder");
  }
}

/// The engine polls within a block; the poll must not outlive the measurement.
class PollScope {
 public:
  PollScope(model::Backends& backends, const CancelPoll& poll) : backends_(backends) {
    backends_.set_cancel_poll(poll);
  }
  ~PollScope() { backends_.set_cancel_poll({}); }
  PollScope(const PollScope&) = delete;
  PollScope& operator=(const PollScope&) = delete;

 private:
  model::Backends& backends_;
};

}  // namespace

Measurement measure(const BenchPoint& point, const CancelPoll& should_cancel) {
  validate(point);
  std::optional<AnonWatch> watch(std::in_place);
  engine::LoadedModel loaded(
      point.engine, [&](float /*fraction*/) { return !should_cancel || !should_cancel(); });
  const PollScope poll(loaded.backends, should_cancel);
  Measurement result;
  warm_up(point, loaded, should_cancel);
  add_plan(point, loaded, result);
  result.loaded_anon_bytes = anon_bytes();
  result.weights_bytes = file_bytes(point.engine.model_path) + file_bytes(point.engine.mmproj_path);

  std::optional<LlamaSide> llama;
  std::vector<PlateauRun> runs;
  for (int i = 0; i < point.n_repeats; ++i) {
    runs.push_back(run_plateau(point, loaded, should_cancel, /*times=*/nullptr));
    if (i == 0) {
      result.peak_anon_bytes = watch->peak_bytes();
      result.peak_rss_bytes = peak_rss_bytes();
      watch.reset();
    }
    if (!point.against_llama_cpp) continue;
    const int n_ubatch = point.n_ubatch > 0 ? point.n_ubatch : runs.front().n_largest_block;
    if (!llama) llama.emplace(point, loaded, n_ubatch, should_cancel);
    llama->run();
  }

  const auto times_of = [&](double PlateauRun::*member) {
    std::vector<double> values;
    for (const PlateauRun& run : runs) values.push_back(run.*member);
    return values;
  };
  const auto spread = [&](double PlateauRun::*member) { return spread_of(times_of(member)); };
  result.ttft_ms = spread(&PlateauRun::ttft_ms);
  result.encode_ms = spread(&PlateauRun::encode_ms);
  result.prefill_ms = spread(&PlateauRun::prefill_ms);
  result.score_ms = spread(&PlateauRun::score_ms);
  result.select_ms = spread(&PlateauRun::select_ms);
  result.compact_ms = spread(&PlateauRun::compact_ms);
  if (point.n_decode > 0) {
    result.decode_tok_s =
        LlamaSide::tokens_per_second(point.n_decode, times_of(&PlateauRun::decode_ms));
  }
  if (llama) {
    result.llama = llama->result(times_of(&PlateauRun::ttft_ms), times_of(&PlateauRun::decode_ms));
  }
  if (point.profile) result.profile = profile(point, loaded, should_cancel);
  result.first = std::move(runs.front());
  return result;
}

}  // namespace plateau::bench

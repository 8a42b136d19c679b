// The questions of a set, full cache, beside llama.cpp: both should begin their answers with the
// same token. Qwen2.5-VL's pictures are encoded on each side by its own encoder, from the same
// pixels; a family of tiles, whose tokens libmtmd orders otherwise, gets our encoder's rows on both
// sides. Output: one line of JSON per question, then one with their sum.
//
//   agreement_bench --set DIR -m text.gguf --mmproj mmproj.gguf -t 2
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/loaded_model.h"
#include "engine/media_plan.h"
#include "engine/prefill.h"
#include "engine/request_plan.h"
#include "eval/dataset.h"
#include "eval/run_record.h"
#include "eval/runner.h"
#include "read_picture.h"
#include "support/compare.h"
#include "support/llama_oracle.h"
#include "support/mtmd_oracle.h"

namespace {

using namespace plateau;

/// Keeps what it hands on.
class RecordedUnits final : public engine::UnitSource {
 public:
  explicit RecordedUnits(engine::UnitSource& source) : source_(source) {}

  std::span<const float> unit(int medium, int unit) override {
    const std::span<const float> rows = source_.unit(medium, unit);
    if (std::pair(medium, unit) != last_) rows_.insert(rows_.end(), rows.begin(), rows.end());
    last_ = {medium, unit};
    return rows;
  }
  /// Of all units, in prompt order.
  const std::vector<float>& rows() const { return rows_; }

 private:
  engine::UnitSource& source_;
  std::vector<float> rows_;
  std::pair<int, int> last_{-1, -1};
};

std::vector<float> our_logits(engine::RequestPlan& plan, engine::LoadedModel& loaded,
                              RecordedUnits& units) {
  const engine::PromptTokens tokens(plan.prompt, plan.protection);
  engine::Sequence sequence(loaded.language_model, loaded.backends,
                            {.n_arena = plan.budget.n_arena}, tokens);
  return engine::prefill(plan.prompt, plan.blocks, plan.budget, sequence, &units,
                         [](int, int64_t) {})
      .logits;
}

/// `rows`: of all visual tokens, in prompt order.
std::vector<float> llamas_logits(const engine::PromptPlan& prompt, std::span<const float> rows,
                                 bool has_mrope, test::LlamaOracle& llama) {
  llama.clear();
  const auto width = static_cast<size_t>(llama.n_embd());
  std::vector<float> logits;
  std::vector<test::LlamaOracle::Position> pending;  // of visual tokens that were not run yet
  const auto run_pending = [&] {
    if (pending.empty()) return;
    const auto next = rows.first(pending.size() * width);
    logits = has_mrope ? llama.decode_embeddings_at(next, pending) : llama.decode_embeddings(next);
    rows = rows.subspan(next.size());
    pending.clear();
  };
  for (const engine::Piece& piece : prompt.pieces()) {
    if (piece.kind == engine::PieceKind::kVisual) {
      for (int i = 0; i < piece.n_tokens(); ++i) {
        const kv::Position position = prompt.position(piece, i);
        pending.push_back({position.t, position.h, position.w});
      }
      continue;
    }
    run_pending();
    logits = llama.decode(piece.tokens);
  }
  run_pending();
  return logits;
}

/// Of the pictures as they are used, so that libmtmd has nothing to resize.
std::vector<float> mtmds_rows(const engine::RequestPlan& plan, const media::ImageLimits& limits,
                              test::MtmdOracle& mtmd) {
  std::vector<float> rows;
  for (const engine::PlannedImage& image : plan.images) {
    const test::RgbPicture picture =
        read_picture(image.path, image.used_width(), image.used_height(), limits);
    for (const std::vector<float>& part : mtmd.encode(picture)) {
      rows.insert(rows.end(), part.begin(), part.end());
    }
  }
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Whether answers begin as llama.cpp's do");
  EngineOptions options;
  options.device = "CPU";
  eval::DatasetOptions set;
  size_t limit = 0;
  int n_ctx = 16384;
  app.add_option("--set", set.path, "A question set of plateau needle")->required();
  app.add_option("-m,--model", options.model_path)->required();
  app.add_option("--mmproj", options.mmproj_path)->required();
  app.add_option("--limit", limit, "Only the first questions; 0: all");
  app.add_option("--ctx", n_ctx, "llama.cpp's cache, in tokens");
  app.add_option("-t,--threads", options.n_threads);
  CLI11_PARSE(app, argc, argv);
  try {
    engine::LoadedModel loaded(options, {});
    const bool has_mrope = loaded.language_model.config().has_mrope();
    std::optional<test::MtmdOracle> mtmd;
    if (has_mrope) {
      mtmd.emplace(options.model_path, options.mmproj_path,
                   test::MtmdOracleOptions{.n_threads = loaded.backends.n_threads(),
                                           .image_min_tokens = 1,
                                           .image_max_tokens = n_ctx});
    }
    test::LlamaOracle llama(options.model_path,
                            {.n_ctx = n_ctx, .n_threads = loaded.backends.n_threads()});
    const model::Vocab& vocab = loaded.language_model.vocab();
    const eval::Dataset questions = eval::read_dataset(set);
    size_t n = 0;
    size_t n_same = 0;
    for (const eval::SetQuestion& question : questions.questions) {
      if (limit > 0 && n == limit) break;
      const Request request = eval::make_request(question, {}, {});
      engine::RequestPlan plan = engine::plan_request(request, loaded);
      engine::VisualSource visuals(*loaded.encoder, plan.images, engine::to_limits(request.image),
                                   loaded.encoder_batch());
      RecordedUnits units(visuals);
      const std::vector<float> ours = our_logits(plan, loaded, units);
      const std::vector<float> rows =
          mtmd ? mtmds_rows(plan, engine::to_limits(request.image), *mtmd) : units.rows();
      const std::vector<float> theirs = llamas_logits(plan.prompt, rows, has_mrope, llama);
      const auto first = [&](const std::vector<float>& logits) {
        return vocab.piece(static_cast<model::Token>(test::argmax(logits)));
      };
      n_same += test::argmax(ours) == test::argmax(theirs) ? 1 : 0;
      ++n;
      const nlohmann::ordered_json line = {{"id", question.id},
                                           {"prompt_tokens", plan.prompt.n_tokens()},
                                           {"ours", first(ours)},
                                           {"llama_cpp", first(theirs)},
                                           {"nmse", test::nmse(ours, theirs)}};
      fmt::print("{}", eval::to_line(line));
      std::fflush(stdout);
    }
    fmt::print("{{\"questions\": {}, \"same_first_token\": {}}}\n", n, n_same);
  } catch (const std::exception& error) {
    fmt::print(stderr, "agreement_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}

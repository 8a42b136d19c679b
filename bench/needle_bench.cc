// Accuracy on the bundled model: the questions of a needle set (plateau needle), for a list of
// policies and budgets. Each picture is encoded once and prefilled once per setting.
//
//   plateau needle --out DIR --count 50
//   needle_bench --set DIR --model T.gguf --mmproj V.gguf --settings full,snapkv:256,resize:258
//
// A setting is "full", POLICY:BUDGET, or resize:TOKENS (lower resolution, full cache); with
// --blocks, each runs for every block size. Output: one line of JSON per setting, with the standard
// error.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/stopwatch.h"
#include "engine/decode.h"
#include "engine/media_plan.h"
#include "engine/prefill.h"
#include "engine/request_plan.h"
#include "model/sampler.h"

namespace {

using namespace plateau;

struct Question {
  std::string image;
  std::string text;
  std::string answer;
};

struct Setting {
  std::string name;  // as given
  std::string policy = "full";
  int budget = 0;
  int64_t max_visual_tokens = 0;
  int block = 0;
};

struct Tally {
  int n = 0;
  int n_right = 0;
  double visual_tokens = 0;
  double kept = 0;
  double prefill_ms = 0;
  std::string answers;
};

std::vector<Question> read_set(const std::string& folder, size_t limit) {
  std::ifstream file(folder + "/set.jsonl");
  if (!file) throw_error(ErrorCode::kNotFound, "[{}/set.jsonl] cannot be read", folder);
  std::vector<Question> questions;
  std::string line;
  while (questions.size() < limit && std::getline(file, line)) {
    const auto json = nlohmann::json::parse(line);
    questions.push_back({folder + "/" + json.at("image").get<std::string>(),
                         json.at("question").get<std::string>(),
                         json.at("answer").get<std::string>()});
  }
  return questions;
}

Setting parse_setting(const std::string& text, int block) {
  Setting setting;
  setting.name = text;
  setting.block = block;
  const size_t colon = text.find(':');
  const int number = colon == std::string::npos ? 0 : std::stoi(text.substr(colon + 1));
  const std::string name = text.substr(0, colon);
  if (name == "resize") {
    setting.max_visual_tokens = number;
  } else {
    setting.policy = name;
    setting.budget = number;
  }
  return setting;
}

/// All units of the pictures of one request, encoded ahead.
class EncodedUnits final : public engine::UnitSource {
 public:
  EncodedUnits(engine::LoadedModel& loaded, const engine::RequestPlan& plan, int encoder_batch) {
    engine::VisualSource source(*loaded.encoder, plan.images, {}, encoder_batch);
    for (const engine::Piece& piece : plan.prompt.pieces()) {
      if (piece.kind != engine::PieceKind::kVisual) continue;
      const auto unit = source.unit(piece.medium, piece.unit);
      units_[{piece.medium, piece.unit}].assign(unit.begin(), unit.end());
    }
  }
  std::span<const float> unit(int image, int unit) override { return units_.at({image, unit}); }

 private:
  std::map<std::pair<int, int>, std::vector<float>> units_;
};

void answer(const Request& request, const engine::RequestPlan& plan, engine::LoadedModel& loaded,
            engine::UnitSource& units, const Question& question, Tally& tally) {
  engine::Sequence sequence(loaded.language_model, loaded.backends,
                            {.n_arena = plan.budget.n_arena,
                             .policy = plan.policy.get(),
                             .policy_options = request.kv.policy_options},
                            plan.protection.info);
  if (plan.policy && plan.policy->needs_question()) {
    sequence.set_proxies(
        engine::question_rows(plan.prompt, sequence.runner(), request.kv.policy_options.window));
  }
  engine::PrefillResult prefilled =
      engine::prefill(plan.prompt, plan.blocks, plan.budget, sequence, &units, [](int, int64_t) {});
  tally.kept += sequence.n_held();
  model::Sampler sampler(request.sampling);
  std::string text;
  engine::decode(
      std::move(prefilled.logits),
      {.max_new_tokens = request.max_new_tokens,
       .first_position = plan.prompt.next_position(),
       .n_recent = plan.n_recent},
      plan.budget, loaded.language_model.vocab(), sampler, sequence, [] {},
      [&](const std::string& piece) { text += piece; });
  ++tally.n;
  tally.n_right += text == question.answer ? 1 : 0;
  tally.visual_tokens += static_cast<double>(plan.prompt.n_visual_tokens());
  tally.prefill_ms += prefilled.prefill_ms;
  tally.answers += text + " ";
}

void print(const Setting& setting, const Tally& tally) {
  const double n = tally.n;
  const double accuracy = tally.n_right / n;
  fmt::print(
      "{{\"bench\": \"needle\", \"setting\": \"{}\", \"block\": {}, \"n\": {}, \"accuracy\": "
      "{:.3f}, "
      "\"standard_error\": {:.3f}, \"visual_tokens\": {:.0f}, \"kept\": {:.0f}, \"prefill_ms\": "
      "{:.0f}, \"answers_hash\": \"{:016x}\"}}\n",
      setting.name, setting.block, tally.n, accuracy, std::sqrt(accuracy * (1 - accuracy) / n),
      tally.visual_tokens / n, tally.kept / n, tally.prefill_ms / n,
      std::hash<std::string>()(tally.answers));
}

}  // namespace

int main(int argc, char** argv) {
  std::string set;
  std::vector<std::string> names = {"full"};
  std::vector<int> blocks = {0};
  size_t limit = SIZE_MAX;
  EngineOptions options;
  CLI::App app("Accuracy on needle pictures", "needle_bench");
  app.add_option("--set", set)->required();
  app.add_option("--model", options.model_path)->required();
  app.add_option("--mmproj", options.mmproj_path)->required();
  app.add_option("--settings", names)->delimiter(',');
  app.add_option("--blocks", blocks)->delimiter(',');
  app.add_option("--limit", limit);
  app.add_option("--threads", options.n_threads);
  CLI11_PARSE(app, argc, argv);
  try {
    engine::LoadedModel loaded(options, {});
    std::vector<Setting> settings;
    for (const std::string& name : names) {
      for (const int block : blocks) settings.push_back(parse_setting(name, block));
    }
    std::vector<Tally> tallies(settings.size());
    for (const Question& question : read_set(set, limit)) {
      std::map<int64_t, std::unique_ptr<EncodedUnits>> encoded;  // by max_visual_tokens
      for (size_t i = 0; i < settings.size(); ++i) {
        Request request;
        request.max_new_tokens = 8;
        request.kv.block = settings[i].block;
        request.kv.policy = settings[i].policy;
        request.kv.budget = settings[i].budget;
        request.image.max_visual_tokens = settings[i].max_visual_tokens;
        request.messages = {{"user", {ImagePart{question.image}, TextPart{question.text}}}};
        const engine::RequestPlan plan = engine::plan_request(request, loaded);
        auto& units = encoded[settings[i].max_visual_tokens];
        if (!units) units = std::make_unique<EncodedUnits>(loaded, plan, /*encoder_batch=*/16);
        answer(request, plan, loaded, *units, question, tallies[i]);
      }
    }
    for (size_t i = 0; i < settings.size(); ++i) print(settings[i], tallies[i]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "needle_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}

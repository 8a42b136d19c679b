// Accuracy on the bundled model: the questions of a needle set (plateau needle), for a list of
// policies and budgets, in one process. One line of JSON per setting, with the standard error.
//
//   plateau needle --out DIR --count 50 && needle_bench --set DIR --settings full,snapkv:256,...
//
// A setting is POLICY:BUDGET, "full", or "resize:TOKENS" (lower resolution, full cache).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/stopwatch.h"
#include "plateau/engine.h"

namespace {

using namespace plateau;

struct Question {
  std::string image;
  std::string text;
  std::string answer;
};

std::vector<Question> read_set(const std::string& folder, size_t limit) {
  std::ifstream file(folder + "/set.jsonl");
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

void apply(const std::string& setting, Request& request) {
  const size_t colon = setting.find(':');
  const std::string name = setting.substr(0, colon);
  const int number = colon == std::string::npos ? 0 : std::stoi(setting.substr(colon + 1));
  if (name == "full") return;
  if (name == "resize") {
    request.image.max_visual_tokens = number;
    return;
  }
  request.kv.policy = name;
  request.kv.budget = number;
}

}  // namespace

int main(int argc, char** argv) {
  std::string set;
  std::vector<std::string> settings = {"full"};
  std::vector<int> blocks = {0};
  size_t limit = SIZE_MAX;
  EngineOptions options;
  std::string output;
  CLI::App app("Accuracy on needle pictures", "needle_bench");
  app.add_option("--set", set)->required();
  app.add_option("--model", options.model_path)->required();
  app.add_option("--mmproj", options.mmproj_path)->required();
  app.add_option("--settings", settings)->delimiter(',');
  app.add_option("--blocks", blocks)->delimiter(',');
  app.add_option("--limit", limit);
  app.add_option("--threads", options.n_threads);
  CLI11_PARSE(app, argc, argv);
  try {
    Engine engine = Engine::open(options);
    const std::vector<Question> questions = read_set(set, limit);
    for (const std::string& setting : settings) {
      for (const int block : blocks) {
        int n_right = 0;
        std::string answers;
        double tokens = 0;
        const Stopwatch watch;
        for (const Question& question : questions) {
          Request request;
          request.max_new_tokens = 8;
          request.kv.block = block;
          apply(setting, request);
          request.messages = {
              {"user", {ImagePart{question.image}, TextPart{question.text}}}};
          const Answer answer = engine.run(request);
          n_right += answer.text == question.answer ? 1 : 0;
          answers += answer.text + " ";
          tokens += static_cast<double>(answer.usage.visual_tokens);
        }
        const auto n = static_cast<double>(questions.size());
        const double accuracy = n_right / n;
        fmt::print(
            "{{\"bench\": \"needle\", \"setting\": \"{}\", \"block\": {}, \"n\": {}, \"accuracy\": "
            "{:.3f}, \"standard_error\": {:.3f}, \"visual_tokens\": {:.0f}, \"s_per_question\": "
            "{:.2f}, \"answers_hash\": \"{:016x}\"}}\n",
            setting, block, questions.size(), accuracy, std::sqrt(accuracy * (1 - accuracy) / n),
            tokens / n, watch.ms() / 1000 / n, std::hash<std::string>()(answers));
        std::fflush(stdout);
      }
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "needle_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}

// plateau eval: a question set over policies and budgets (docs/eval.md).
// Tested by tests/cli/eval_command_test.cc.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/byte_size.h"
#include "base/check.h"
#include "base/plural.h"
#include "cli/commands.h"
#include "cli/eval_progress.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output_file.h"
#include "cli/progress_bar.h"
#include "cli/run_options.h"
#include "cli/say.h"
#include "cli/text_file.h"
#include "cli/validators.h"
#include "engine/loaded_model.h"
#include "eval/fingerprint.h"
#include "eval/pending.h"
#include "eval/readers/json_record.h"
#include "eval/run_file.h"
#include "eval/run_summary.h"
#include "eval/run_workers.h"
#include "eval/runner.h"
#include "kv/policy.h"
#include "model/backend.h"

namespace plateau::cli {
namespace {

using Json = nlohmann::ordered_json;

struct EvalOptions {
  eval::DatasetOptions set;
  std::string format = "auto";
  EngineOptions engine;
  eval::RunnerOptions runner;
  eval::SettingsGrid grid;
  std::vector<std::string> budgets = {"full"};
  std::vector<std::string> blocks = {"0"};
  std::string judge = "generate";
  std::string match = "equal";
  std::string system;
  std::string chat_template_file;
  std::string out;
  size_t limit = 0;  // 0: all questions
  int n_jobs = 1;
  std::string embedding_cache = "1GiB";
  bool strict_data = false;
  bool quiet = false;
};

eval::OpenMatch parse_match(const std::string& name) {
  if (name == "equal") return eval::OpenMatch::kEqual;
  if (name == "contains") return eval::OpenMatch::kContains;
  throw_error(ErrorCode::kInvalidArgument, "[--match] expected equal or contains, got '{}'", name);
}

/// Parses what CLI11 does not, and checks all that needs no file.
std::vector<eval::Setting> make_settings(const EvalOptions& o) {
  eval::SettingsGrid grid = o.grid;
  grid.budgets.clear();
  for (const std::string& budget : o.budgets) grid.budgets.push_back(parse_kv_budget(budget));
  grid.blocks.clear();
  for (const std::string& block : o.blocks) grid.blocks.push_back(eval::parse_block_size(block));
  for (const std::string& policy : grid.policies) {
    if (policy != kv::kFullPolicy) {
      (void)kv::make_policy(policy, o.runner.base.kv.policy_options);  // a wrong name is an error
    }
  }
  return eval::cross(grid);
}

bool shows_films(const eval::Dataset& set) {
  const auto is_film = [](const eval::MediaItem& item) {
    return item.kind != eval::MediaKind::kImage;
  };
  return std::any_of(set.questions.begin(), set.questions.end(), [&](const auto& question) {
    return std::any_of(question.media.begin(), question.media.end(), is_film);
  });
}

/// What must be the same for two results to be of one run, and what is good to know.
Json make_header(const EvalOptions& o, const EngineOptions& engine, const eval::Dataset& set) {
  const PolicyOptions& policy = o.runner.base.kv.policy_options;
  Json identity;
  identity["model"] = eval::file_fingerprint(o.engine.model_path);
  identity["mmproj"] =
      o.engine.mmproj_path.empty() ? "" : eval::file_fingerprint(o.engine.mmproj_path);
  identity["set"] = set.hash;
  identity["format"] = eval::to_string(set.format);
  identity["judge"] = o.judge;
  identity["match"] = o.match;
  identity["n_predict"] = o.runner.base.max_new_tokens;
  identity["system"] = o.system;
  identity["chat_template"] =
      engine.chat_template.empty() ? "" : eval::sha256(engine.chat_template);
  identity["max_tiles"] = o.runner.base.image.max_tiles;
  identity["thumbnail"] = o.runner.base.image.thumbnail;
  if (shows_films(set)) {
    identity["fps"] = o.runner.base.video.fps;
    identity["max_frames"] = o.runner.base.video.max_frames;
  }
  identity["cache_type_k"] = static_cast<int>(o.engine.cache_type_k);
  identity["cache_type_v"] = static_cast<int>(o.engine.cache_type_v);
  identity["policy_options"] = {{"window", policy.window},
                                {"pool", static_cast<int>(policy.pool)},
                                {"kernel", policy.pool_kernel},
                                {"pool_axis", static_cast<int>(policy.pool_axis)},
                                {"group", static_cast<int>(policy.group)},
                                {"proxy_position", static_cast<int>(policy.proxy_position)},
                                {"seed", policy.seed}};
  return {{"type", "header"},
          {"schema", "plateau-eval-1"},
          {"identity", identity},
          {"model", o.engine.model_path},
          {"mmproj", o.engine.mmproj_path},
          {"set", o.set.path},
          {"questions", set.questions.size()}};
}

/// For the results in a file: of this set, under settings that there are.
eval::RunFile::Check record_check(const eval::Dataset& set) {
  auto by_id = std::make_shared<std::map<std::string, const eval::SetQuestion*>>();
  for (const eval::SetQuestion& question : set.questions) (*by_id)[question.id] = &question;
  return [by_id](const eval::ResultRecord& record) -> std::string {
    const auto policies = kv::policies();
    const bool knows_policy = record.setting.policy == kv::kFullPolicy ||
                              std::any_of(policies.begin(), policies.end(), [&](const auto& entry) {
                                return entry.name == record.setting.policy;
                              });
    if (!knows_policy) {
      return fmt::format("field policy: expected one that there is, got '{}'",
                         record.setting.policy);
    }
    const auto question = by_id->find(record.id);
    if (question == by_id->end()) {
      return fmt::format("field id: expected the id of a question of the set, got '{}'", record.id);
    }
    return eval::contradiction(record, *question->second);
  };
}

EngineOptions make_engine_options(const EvalOptions& o) {
  EngineOptions engine = o.engine;
  if (!o.chat_template_file.empty()) engine.chat_template = read_text_file(o.chat_template_file);
  // Processes share the machine as they share the weights.
  if (o.embedding_cache != "0") {
    engine.embedding_cache_bytes =
        parse_byte_size(o.embedding_cache, "--embedding-cache") / o.n_jobs;
  }
  if (o.n_jobs > 1) {
    const model::Device device = model::Device::find(engine.device);
    if (!device.is_cpu()) {
      throw_error(ErrorCode::kInvalidArgument,
                  "[--jobs] expected 1 on the device {}, got {}; processes share weights on the "
                  "CPU only",
                  device.name(), o.n_jobs);
    }
    if (engine.n_threads == 0) engine.n_threads = std::max(1, model::usable_cores() / o.n_jobs);
  }
  return engine;
}

/// Asks all that is pending and hands every record on as soon as it is there.
void run_pending(const EvalOptions& o, const EngineOptions& engine_options,
                 const std::vector<eval::SetQuestion>& questions,
                 const std::vector<eval::PendingGroup>& groups,
                 const std::function<void(eval::ResultRecord)>& on_record) {
  ProgressBar bar;
  Engine engine = Engine::open(engine_options, [&](float fraction) {
    if (!o.quiet) bar.draw(fraction, "loading the model");
    return !interrupted();
  });
  bar.clear();
  const auto run_group = [&](const eval::PendingGroup& group, const auto& emit) {
    for (const eval::PendingQuestion& pending : group) {
      for (const eval::Setting& setting : pending.settings) {
        emit(eval::run_question(engine, questions[pending.question], setting, o.runner,
                                interrupted));
      }
    }
  };
  if (o.n_jobs == 1) {
    for (const eval::PendingGroup& group : groups) run_group(group, on_record);
    return;
  }
  eval::run_in_workers(
      groups.size(), o.n_jobs,
      [&](size_t task, const eval::LineSink& emit) {
        run_group(groups[task], [&](const eval::ResultRecord& record) {
          emit(eval::to_line(eval::to_json(record)));
        });
      },
      [&](const std::string& line) {
        on_record(eval::read_result({nlohmann::json::parse(line), "--jobs"}));
      },
      interrupted);
}

/// Of several records for one pair, the last counts.
void put_record(std::vector<eval::ResultRecord>& records, eval::ResultRecord record) {
  const auto same = std::find_if(records.begin(), records.end(), [&](const auto& other) {
    return other.is_error && other.id == record.id && other.setting == record.setting;
  });
  if (same == records.end()) {
    records.push_back(std::move(record));
  } else {
    *same = std::move(record);
  }
}

void write_summary(const eval::RunSummary& summary, std::optional<eval::RunFile>& file) {
  if (file) {
    for (const Json& line : eval::to_json(summary)) file->append(eval::to_line(line));
  }
  fmt::print("{}", eval::to_table(summary));
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw_error(ErrorCode::kUnavailable, "[standard output] the table cannot be written");
  }
}

eval::Dataset read_questions(const EvalOptions& o) {
  eval::DatasetOptions options = o.set;
  options.format = eval::parse_dataset_format(o.format);
  eval::Dataset set = eval::read_dataset(options);
  return set;
}

int evaluate(EvalOptions o) {
  install_interrupt_handler();
  const std::vector<eval::Setting> settings = make_settings(o);
  o.runner.judge = eval::parse_judge(o.judge);
  o.runner.match = parse_match(o.match);
  if (!o.system.empty()) o.runner.base.messages.push_back({"system", {TextPart{o.system}}});
  for (const eval::Setting& setting : settings) eval::check_options(setting, o.runner);
  const EngineOptions engine_options = make_engine_options(o);
  engine::check_engine_options(engine_options);
  const eval::Dataset all = read_questions(o);
  eval::Dataset set = all;
  if (o.limit > 0 && set.questions.size() > o.limit) set.questions.resize(o.limit);

  std::vector<std::string> inputs = set.files;
  inputs.insert(inputs.end(), {o.engine.model_path, o.engine.mmproj_path, o.chat_template_file});
  check_outputs({{"--out", o.out}}, inputs);
  std::optional<eval::RunFile> file;
  std::vector<eval::ResultRecord> records;
  if (!o.out.empty()) {
    file.emplace(o.out, make_header(o, engine_options, set), record_check(all));
    records = file->found();
    if (file->was_repaired()) {
      say("plateau: {}: an unfinished last line was dropped\n", o.out);
    }
  }
  const std::vector<eval::PendingGroup> groups =
      eval::pending_groups(set.questions, settings, records);
  const size_t n_pending = eval::count_pairs(groups);
  if (!o.quiet) {
    const auto number_of = [](size_t n, const char* noun) {
      return counted(static_cast<int64_t>(n), noun);
    };
    say("plateau: {} ({}) under {}, {} to go\n", number_of(set.questions.size(), "question"),
        eval::to_string(set.format), number_of(settings.size(), "setting"),
        number_of(n_pending, "answer"));
  }

  EvalProgress progress(n_pending, o.quiet);
  const auto on_record = [&](eval::ResultRecord record) {
    if (file) file->append(eval::to_line(eval::to_json(record)));
    if (record.is_error && o.strict_data) {
      throw_error(ErrorCode::kCorrupt, "{} under {}: {}", record.id, record.setting.name(),
                  record.error_message);
    }
    progress.add(record);
    put_record(records, std::move(record));
  };
  try {
    if (n_pending > 0) run_pending(o, engine_options, set.questions, groups, on_record);
  } catch (const Error& error) {
    progress.clear();
    if (file && error.code() == ErrorCode::kCancelled) {
      say("plateau: {} kept in {}; the same command goes on\n",
          counted(static_cast<int64_t>(records.size()), "result"), o.out);
    }
    throw;
  }
  progress.clear();
  write_summary(eval::summarize(records), file);
  const auto n_errors = std::count_if(records.begin(), records.end(),
                                      [](const auto& record) { return record.is_error; });
  if (n_errors == 0) return kExitAnswered;
  say("plateau: {} of {} could not be had\n", n_errors,
      counted(static_cast<int64_t>(records.size()), "answer"));
  return kExitBadInput;
}

void add_set_options(CLI::App& app, EvalOptions& o) {
  app.add_option("--set", o.set.path, "Questions: a file, or the folder of a set")->required();
  app.add_option("--format", o.format, "auto, plateau, mm-niah, vstar, mlvu or videomme")
      ->capture_default_str();
  app.add_option("--media", o.set.media_root,
                 "Folder that pictures and films are relative to; default: the format's own");
  app.add_option("--limit", o.limit, "Only the first questions; 0: all")
      ->check(whole_number())
      ->capture_default_str();
  app.add_flag("--strict-data", o.strict_data, "Stop at the first question that cannot be asked");
}

void add_setting_options(CLI::App& app, EvalOptions& o) {
  app.add_option("--policy", o.grid.policies, "What the cache keeps; several with commas")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--kv-budget", o.budgets, "Tokens kept per layer and head, or full; with commas")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--resize", o.grid.resizes,
                 "Also the full cache at a resolution of so many visual tokens; with commas")
      ->delimiter(',');
  app.add_option("--block", o.blocks, "Tokens per block, or tile, row, frame; with commas")
      ->delimiter(',')
      ->capture_default_str();
  app.add_flag("--strict", o.grid.strict, "Evict before each block");
  app.add_flag_callback(
      "--no-bulk", [&o] { o.grid.bulk = false; },
      "Do not run what fits the budget in larger blocks first");
  KvOptions& kv = o.runner.base.kv;
  add_policy_options(app, kv.policy_options);
  add_proxy_option(app, kv.policy_options);
  add_cache_type_options(app, o.engine);
}

void add_answer_options(CLI::App& app, EvalOptions& o) {
  app.add_option("--judge", o.judge,
                 "Multiple choice: generate (the letter in the answer), likelihood (of the "
                 "letters) or likelihood-text (of the options' texts)")
      ->capture_default_str();
  app.add_option("--match", o.match, "Open answers: equal, or contains the right one")
      ->capture_default_str();
  app.add_option("-n,--n-predict", o.runner.base.max_new_tokens, "Most tokens to answer with")
      ->capture_default_str();
  app.add_option("--system", o.system, "System message");
  app.add_option("--chat-template-file", o.chat_template_file,
                 "Jinja template used instead of the model's own");
  ImageOptions& image = o.runner.base.image;
  app.add_option("--max-tiles", image.max_tiles, "Cap on tiles per picture; 0: native detail")
      ->capture_default_str();
  app.add_flag_callback(
      "--no-thumbnail", [&image] { image.thumbnail = false; },
      "Do not append the whole picture as one more tile");
  app.add_option("--max-image-pixels", image.max_pixels, "Refuse larger pictures from their header")
      ->capture_default_str();
  VideoOptions& video = o.runner.base.video;
  app.add_option("--fps", video.fps, "Frames looked at per second of film")->capture_default_str();
  app.add_option("--max-frames", video.max_frames,
                 "Of a film with more frames, so many spread evenly; 0: no cap")
      ->capture_default_str();
}

}  // namespace

Command add_eval_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("eval", "Ask a question set under policies and budgets");
  auto o = std::make_shared<EvalOptions>();
  o->runner.base.max_new_tokens = 32;
  add_set_options(*command, *o);
  command->add_option("-m,--model", o->engine.model_path, "Text model (GGUF)")->required();
  command->add_option("--mmproj", o->engine.mmproj_path, "Vision projector (GGUF)");
  command->add_option("--out", o->out,
                      "Results as JSON lines; a file that is there is gone on with");
  add_setting_options(*command, *o);
  add_answer_options(*command, *o);
  add_machine_options(*command, o->engine);
  command->add_option("--jobs", o->n_jobs, "Processes that share the weights")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command
      ->add_option("--embedding-cache", o->embedding_cache,
                   "Memory for encoded pictures, such as 1GiB, shared by all jobs")
      ->capture_default_str();
  command->add_flag("-q,--quiet", o->quiet, "Only the table and errors");
  return {command, [o] { return evaluate(*o); }};
}

}  // namespace plateau::cli

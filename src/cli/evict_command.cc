// plateau evict: the eviction policies on keys, queries and values from files (docs/evict.md).
// Tested by tests/evict/evict_command_test.cc.
#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <optional>

#include "arrays/array_file.h"
#include "base/check.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output_file.h"
#include "cli/run_options.h"
#include "cli/text_file.h"
#include "engine/offline_eviction.h"
#include "kv/policy.h"
#include "model/backend.h"

namespace plateau::cli {
namespace {

struct EvictOptions {
  engine::OfflineEviction eviction;
  std::string in;
  std::string keys;
  std::string queries;
  std::string values;
  std::string positions;
  std::string out = "-";
  std::optional<int> budget;
  int n_threads = 0;
};

/// The files that the options name; a file of its own comes before the tensor in --in.
class InputArrays {
 public:
  explicit InputArrays(const EvictOptions& o) {
    if (!o.in.empty()) bundle_.emplace(o.in);
    keys_ = open(o.keys, "keys", files_[0]);
    queries_ = open(o.queries, "queries", files_[1]);
    values_ = open(o.values, "values", files_[2]);
    positions_ = open(o.positions, "positions", files_[3]);
    if (keys_ == nullptr && bundle_) {
      throw_error(
          ErrorCode::kInvalidArgument,
          "[{}] expected a tensor named keys, got none; try --keys for a file with one array",
          o.in);
    }
  }
  InputArrays(const InputArrays&) = delete;
  InputArrays& operator=(const InputArrays&) = delete;

  void pass_to(engine::OfflineEviction& eviction) const {
    eviction.keys = keys_;
    eviction.queries = queries_;
    eviction.values = values_;
    eviction.positions = positions_;
  }

 private:
  const arrays::Array* open(const std::string& path, const char* name,
                            std::optional<arrays::ArrayFile>& file) {
    if (path.empty()) return bundle_ ? bundle_->find_or_null(name) : nullptr;
    file.emplace(path);
    return &file->only();
  }

  std::optional<arrays::ArrayFile> bundle_;
  std::optional<arrays::ArrayFile> files_[4];
  const arrays::Array* keys_ = nullptr;
  const arrays::Array* queries_ = nullptr;
  const arrays::Array* values_ = nullptr;
  const arrays::Array* positions_ = nullptr;
};

// Written by hand: a JSON tree of a million numbers takes many times their memory.
std::string to_json(const EvictOptions& o, const engine::OfflineEvictionResult& result) {
  std::string json;
  const auto out = std::back_inserter(json);
  fmt::format_to(out, "{{\"policy\": \"{}\", \"budget\": {},\n \"kept\": [", o.eviction.policy,
                 o.budget ? std::to_string(*o.budget) : "null");
  for (size_t head = 0; head < result.kept.size(); ++head) {
    fmt::format_to(out, "{}[{}]", head == 0 ? "" : ",\n  ", fmt::join(result.kept[head], ","));
  }
  json += "]";
  if (!result.scores.empty()) json += ",\n \"scores\": [";
  for (size_t head = 0; head < result.scores.size(); ++head) {
    json += head == 0 ? "[" : ",\n  [";
    for (size_t i = 0; i < result.scores[head].size(); ++i) {
      const std::optional<float>& score = result.scores[head][i];
      if (i > 0) json += ",";
      if (score) {
        fmt::format_to(out, "{}", *score);
      } else {
        json += "null";
      }
    }
    json += "]";
  }
  return json + (result.scores.empty() ? "}\n" : "]}\n");
}

int evict(const EvictOptions& o) {
  install_interrupt_handler();
  if (!o.budget && o.eviction.policy != kv::kFullPolicy) {
    throw_error(ErrorCode::kInvalidArgument,
                "[--budget] expected the number of keys to keep per kv head, got none");
  }
  if (o.budget && *o.budget < 1) {
    throw_error(ErrorCode::kInvalidArgument, "[--budget] expected at least 1 key, got {}",
                *o.budget);
  }
  const InputArrays arrays(o);
  check_outputs({{"--out", o.out, /*may_be_stdout=*/true}},
                {o.in, o.keys, o.queries, o.values, o.positions});
  engine::OfflineEviction eviction = o.eviction;
  arrays.pass_to(eviction);
  eviction.budget = o.budget.value_or(0);
  eviction.n_threads = o.n_threads > 0 ? o.n_threads : model::usable_cores();
  eviction.should_cancel = interrupted;
  write_text_file(o.out, to_json(o, engine::evict_offline(eviction)));
  return kExitAnswered;
}

void add_input_options(CLI::App& app, EvictOptions& o) {
  app.add_option("--keys", o.keys, "[n_head_kv, T, head_dim], rotated; .npy or .safetensors");
  app.add_option(
      "--queries", o.queries,
      "[n_head, W, head_dim], rotated, coming after all keys; for policies that observe");
  app.add_option("--values", o.values, "[n_head_kv, T, head_dim]; for policies that read values");
  app.add_option("--positions", o.positions,
                 "[T, 3]: t, h, w of each key; keys of one t share a grid, t -1 is on none");
  app.add_option("--in", o.in, "A .safetensors file with tensors keys, queries, values, positions");
}

}  // namespace

Command add_evict_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("evict", "Which keys an eviction policy keeps, for arrays from files");
  auto o = std::make_shared<EvictOptions>();
  engine::OfflineEviction& eviction = o->eviction;
  add_input_options(*command, *o);
  std::string names = kv::kFullPolicy;
  for (const kv::PolicyEntry& entry : kv::policies()) names += fmt::format(", {}", entry.name);
  command->add_option("--policy", eviction.policy, "One of " + names)->capture_default_str();
  command->add_option("--budget", o->budget, "Keys to keep per kv head");
  command->add_option("--block", eviction.block, "Keys between evictions; 0: all at once")
      ->capture_default_str();
  command->add_option("--sinks", eviction.n_sinks, "Never evict the first keys")
      ->capture_default_str();
  command
      ->add_option("--recent", eviction.n_recent,
                   "Never evict the last keys of what has been seen so far")
      ->capture_default_str();
  add_policy_options(*command, eviction.policy_options);
  command->remove_option(command->get_option("--window"));  // the queries say how many they are
  command->add_flag("--scores", eviction.want_scores, "Also write the scores of the last scoring");
  command->add_option("--out", o->out, "Write the JSON to a file, - for stdout")
      ->capture_default_str();
  command->add_option("-t,--threads", o->n_threads, "CPU threads; 0: all usable cores")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  return {command, [o] { return evict(*o); }};
}

}  // namespace plateau::cli

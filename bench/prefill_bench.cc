// Prefill against the pinned llama.cpp in one process: same file, same threads, alternating runs.
//
//   prefill_bench compare --sizes 512,1024,2048 [--budget M]   tokens/s of both and their ratio
//   prefill_bench profile --sizes 4096 --budget 1024           where our time goes
//   prefill_bench memory  --sizes 16384 --budget 1024          KV bytes and peak anonymous memory
//
// Without --model, a model of half a billion random parameters (qwen2's shape, q8_0) is written to
// the temporary directory first. Output: one line of JSON per measurement.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <random>

#include "base/check.h"
#include "base/memory.h"
#include "base/stopwatch.h"
#include "engine/sequence.h"
#include "kv/budget.h"
#include "kv/policy.h"
#include "support/llama_oracle.h"
#include "support/tiny_gguf.h"

namespace {

using namespace plateau;

struct BenchOptions {
  std::string model;
  std::vector<int> sizes = {512, 1024, 2048};
  int budget = 0;
  int block = 512;
  bool strict = false;
  std::string policy = "snapkv";
  int n_threads = 2;
  int repeats = 3;
};

std::string model_path(const BenchOptions& options) {
  if (!options.model.empty()) return options.model;
  const auto path = std::filesystem::temp_directory_path() / "plateau-half-billion.gguf";
  if (!std::filesystem::exists(path)) {
    const auto part = path.string() + ".part";
    test::write_tiny_text(test::half_billion_shape(), part);
    std::filesystem::rename(part, path);
  }
  return path.string();
}

std::vector<int32_t> random_tokens(int n, int n_vocab) {
  std::mt19937 rng(1);
  std::vector<int32_t> tokens(static_cast<size_t>(n));
  for (int32_t& token : tokens)
    token = static_cast<int32_t>(rng() % static_cast<uint32_t>(n_vocab));
  return tokens;
}

/// One of our prefills, the cache's allocation included.
struct Ours {
  double ms = 0;
  int64_t kv_bytes = 0;
  int n_arena = 0;
  double score_ms = 0, select_ms = 0, compact_ms = 0;
};

Ours run_ours(const model::LanguageModel& model, const model::Backends& backends,
              const BenchOptions& options, const std::vector<int32_t>& tokens,
              const graph::TensorTap& tap = {}) {
  const Stopwatch watch;
  const PolicyOptions policy_options;
  std::unique_ptr<kv::Policy> policy;
  if (options.budget > 0) policy = kv::make_policy(options.policy, policy_options);
  const bool proxies = policy && policy->needs_question();
  std::vector<int> block_rows;
  const int n = static_cast<int>(tokens.size());
  for (int begin = 0; begin < n; begin += options.block) {
    block_rows.push_back(std::min(options.block, n - begin));
  }
  const kv::BudgetPlan plan = kv::plan_budget({.block_rows = block_rows,
                                               .budget = options.budget,
                                               .strict = options.strict,
                                               .n_proxy = proxies ? policy_options.window : 0,
                                               .n_decode = 32,
                                               .n_protected = 4});
  std::vector<kv::TokenInfo> info(tokens.size());
  for (size_t i = 0; i < info.size(); ++i)
    info[i].position = kv::Position::sequential(static_cast<int32_t>(i));
  for (size_t i = 0; i < 4; ++i) info[i].is_protected = true;
  engine::Sequence sequence(model, backends, {.n_arena = plan.n_arena, .policy = policy.get()},
                            std::move(info));
  if (tap) sequence.runner().set_tap(tap);
  const auto rows_of = [&](size_t begin, size_t count) {
    engine::Rows rows;
    rows.embeddings = sequence.runner().embed(std::span(tokens).subspan(begin, count));
    for (size_t i = 0; i < count; ++i)
      rows.positions.push_back(kv::Position::sequential(static_cast<int32_t>(begin + i)));
    return rows;
  };
  if (proxies) {
    const size_t w = std::min(tokens.size(), static_cast<size_t>(policy_options.window));
    sequence.set_proxies(rows_of(tokens.size() - w, w));
  }
  size_t begin = 0;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const auto count = static_cast<size_t>(plan.steps[i].n_rows);
    const bool is_last = i + 1 == plan.steps.size();
    (void)sequence.append(rows_of(begin, count), plan.steps[i].n_after, is_last,
                          is_last && plan.steps[i].n_rows >= sequence.n_proxy());
    begin += count;
  }
  return {.ms = watch.ms(),
          .kv_bytes = sequence.cache().n_bytes(),
          .n_arena = sequence.cache().n_slot(),
          .score_ms = sequence.eviction_times().score_ms,
          .select_ms = sequence.eviction_times().select_ms,
          .compact_ms = sequence.eviction_times().compact_ms};
}

/// CPU time of this process: with one thread, a measure that other load disturbs little.
double cpu_ms() { return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void compare(const BenchOptions& options) {
  const std::string path = model_path(options);
  const model::Backends backends(model::Device::cpu(), options.n_threads);
  const auto model = model::LanguageModel::load(path, {});
  for (const int size : options.sizes) {
    const std::vector<int32_t> tokens = random_tokens(size, model.config().n_vocab);
    test::LlamaOracle llama(path, {.n_ctx = size + 32,
                                   .n_batch = 512,  // llama-bench's micro-batch
                                   .n_threads = options.n_threads});
    std::vector<double> ours;
    std::vector<double> theirs;
    std::vector<double> cpu_ratios;
    for (int i = 0; i < options.repeats; ++i) {
      const double cpu_start = cpu_ms();
      ours.push_back(run_ours(model, backends, options, tokens).ms);
      const double cpu_middle = cpu_ms();
      llama.clear();
      const Stopwatch watch;
      (void)llama.decode(tokens);
      theirs.push_back(watch.ms());
      cpu_ratios.push_back((cpu_ms() - cpu_middle) / (cpu_middle - cpu_start));
    }
    const auto [low, high] = std::minmax_element(ours.begin(), ours.end());
    fmt::print(
        "{{\"bench\": \"compare\", \"tokens\": {}, \"budget\": {}, \"block\": {}, \"policy\": "
        "\"{}\", \"threads\": {}, \"ours_ms\": {:.0f}, \"ours_min_ms\": {:.0f}, \"ours_max_ms\": "
        "{:.0f}, \"llama_ms\": {:.0f}, \"ours_tok_s\": {:.1f}, \"llama_tok_s\": {:.1f}, "
        "\"speedup\": {:.3f}, \"cpu_speedup\": {:.3f}}}\n",
        size, options.budget, options.block, options.budget > 0 ? options.policy : "full",
        options.n_threads, median(ours), *low, *high, median(theirs), 1000.0 * size / median(ours),
        1000.0 * size / median(theirs), median(theirs) / median(ours), median(cpu_ratios));
    std::fflush(stdout);
  }
}

/// Which part of the work a graph node belongs to.
std::string part_of(const ggml_tensor* node) {
  const std::string_view name = node->name;
  if (name.starts_with("signal")) return "signals";
  if (node->op == GGML_OP_FLASH_ATTN_EXT) return "attention";
  if (node->op == GGML_OP_MUL_MAT) return "linear";
  return "other";
}

void profile(const BenchOptions& options) {
  const std::string path = model_path(options);
  const model::Backends backends(model::Device::cpu(), options.n_threads);
  const auto model = model::LanguageModel::load(path, {});
  for (const int size : options.sizes) {
    const std::vector<int32_t> tokens = random_tokens(size, model.config().n_vocab);
    std::map<std::string, double> parts;
    Stopwatch since_last;
    double before = 0;
    const Ours ours = run_ours(model, backends, options, tokens, [&](ggml_tensor* node) {
      const double now = since_last.ms();
      parts[part_of(node)] += now - before;
      before = now;
    });
    parts["score"] = ours.score_ms;
    parts["select"] = ours.select_ms;
    parts["compact"] = ours.compact_ms;
    fmt::print(
        "{{\"bench\": \"profile\", \"tokens\": {}, \"budget\": {}, \"block\": {}, \"policy\": "
        "\"{}\", \"total_ms\": {:.0f}",
        size, options.budget, options.block, options.policy, ours.ms);
    for (const auto& [part, ms] : parts) {
      fmt::print(", \"{}\": {:.4f}", part, ms / ours.ms);
    }
    fmt::print("}}\n");
    std::fflush(stdout);
  }
}

void memory(const BenchOptions& options) {
  const std::string path = model_path(options);
  const model::Backends backends(model::Device::cpu(), options.n_threads);
  const auto model = model::LanguageModel::load(path, {});
  for (const int size : options.sizes) {
    const std::vector<int32_t> tokens = random_tokens(size, model.config().n_vocab);
    AnonWatch watch;
    const Ours ours = run_ours(model, backends, options, tokens);
    fmt::print(
        "{{\"bench\": \"memory\", \"tokens\": {}, \"budget\": {}, \"arena\": {}, \"kv_bytes\": "
        "{}, \"peak_anon_bytes\": {}, \"tok_s\": {:.1f}}}\n",
        size, options.budget, ours.n_arena, ours.kv_bytes, watch.peak_bytes(),
        1000.0 * size / ours.ms);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  BenchOptions options;
  CLI::App app("Prefill against the pinned llama.cpp", "prefill_bench");
  app.require_subcommand(1);
  for (const auto& [name, run] : std::map<std::string, void (*)(const BenchOptions&)>{
           {"compare", compare}, {"profile", profile}, {"memory", memory}}) {
    CLI::App* command = app.add_subcommand(name);
    command->add_option("--model", options.model);
    command->add_option("--sizes", options.sizes)->delimiter(',');
    command->add_option("--budget", options.budget);
    command->add_option("--block", options.block);
    command->add_flag("--strict", options.strict);
    command->add_option("--policy", options.policy);
    command->add_option("--threads", options.n_threads);
    command->add_option("--repeats", options.repeats);
    command->callback([run = run, &options] { run(options); });
  }
  try {
    CLI11_PARSE(app, argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "prefill_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}

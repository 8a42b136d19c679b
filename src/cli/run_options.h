// The options of `plateau run`, as structs.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plateau/options.h"
#include "plateau/request.h"

namespace plateau::cli {

struct RunOptions {
  EngineOptions engine;
  Request request;                 // without messages; make_request() adds them
  std::vector<ContentPart> media;  // pictures and films, as they stand on the command line
  std::string prompt;
  std::string prompt_file;
  std::string system;
  std::string chat_template_file;
  std::string kv_budget = "full";
  std::string block = "0";
  std::optional<std::string> memory;
  std::optional<std::string> encoder_memory;
  std::string stats_json;
  std::string trace_json;
  std::string heatmap;
  bool quiet = false;
};

void add_run_options(CLI::App& app, RunOptions& options);
/// What decides how a request runs and what it costs; shared by `run` and `plan`.
void add_request_options(CLI::App& app, RunOptions& options);

/// How eviction scores are made; shared by `run` and `evict`.
void add_policy_options(CLI::App& app, PolicyOptions& options);

// Parts that other commands share, too.
void add_proxy_option(CLI::App& app, PolicyOptions& options);
void add_cache_type_options(CLI::App& app, EngineOptions& engine);
void add_machine_options(CLI::App& app, EngineOptions& engine);

/// A number of tokens; 0 for "full". Errors: kInvalidArgument.
int parse_kv_budget(const std::string& text);

/// Reads the files that options name, and parses what CLI11 does not.
/// Errors: kInvalidArgument, kNotFound.
Request make_request(const RunOptions& options);
EngineOptions make_engine_options(const RunOptions& options);
/// Bytes; 0 without --memory.
int64_t memory_bound(const RunOptions& options);

}  // namespace plateau::cli

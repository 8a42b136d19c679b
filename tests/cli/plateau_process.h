// Starts the built program and collects what it does.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "media/fixtures.h"

namespace plateau::cli::testing {

using media::testing::TempDir;

struct Finished {
  int exit_code = -1;  // 128 + signal when a signal ended it
  std::string out;
  std::string err;
  int64_t peak_rss_bytes = 0;
};

struct StartOptions {
  std::string input = {};            // standard input
  std::string interrupt_after = {};  // send SIGINT once this text is on stderr
  std::string err_path = {};         // a file in place of stderr; "closed": none at all
};

/// Runs `plateau ARGUMENTS...` to its end.
Finished plateau(const std::vector<std::string>& arguments, const StartOptions& options = {});

/// The bundled pair of a family, "internvl" or "qwen2.5vl".
std::string pico_text(const std::string& family = "internvl");
std::string pico_mmproj(const std::string& family = "internvl");

/// The lines of a JSONL text.
std::vector<nlohmann::json> json_lines(const std::string& text);

/// `run` on one thread with pico-internvl and these arguments.
std::vector<std::string> pico_run(const std::vector<std::string>& arguments);

/// pico_run() with --stats-json, which must be answered: exit code 0.
nlohmann::json stats_of(const std::vector<std::string>& arguments,
                        const StartOptions& options = {});

/// A needle picture of 8 x 4 pico tiles; its question and the right answer.
struct Needle {
  std::string path;
  std::string question;
  std::string answer;
};
Needle make_needle(const TempDir& dir, int width = 896, int height = 448, int seed = 2);

}  // namespace plateau::cli::testing

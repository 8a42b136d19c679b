// Result lines as bench and eval write them, and files of them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/temp_dir.h"

namespace plateau::report::testing {

using nlohmann::json;

json fingerprint_line();
/// One measurement; `changes` replace its fields.
json bench_line(int64_t visual_tokens, const json& budget, const json& changes = json::object());
json eval_header();
/// One answer; the setting's name is made of the parts.
json answer_line(const std::string& id, const std::string& policy, const json& budget, bool right,
                 const json& changes = json::object());

std::string write_lines(const test::TempDir& dir, const std::string& name,
                        const std::vector<json>& lines);

}  // namespace plateau::report::testing

#include "eval/run_settings.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/check.h"
#include "eval/readers/json_record.h"

namespace plateau::eval {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<BlockUnit, const char*> kUnits[] = {
    {BlockUnit::kTile, "tile"}, {BlockUnit::kRow, "row"}, {BlockUnit::kFrame, "frame"}};

std::string block_text(const Setting& setting) {
  for (const auto& [unit, name] : kUnits) {
    if (setting.block_unit == unit) return name;
  }
  return setting.block == 0 ? "default" : fmt::format("{}", setting.block);
}

void add_once(const Setting& setting, std::vector<Setting>& settings) {
  if (std::find(settings.begin(), settings.end(), setting) == settings.end()) {
    settings.push_back(setting);
  }
}

}  // namespace

std::string Setting::name() const {
  std::string name = resize > 0   ? fmt::format("resize:{}", resize)
                     : budget > 0 ? fmt::format("{}:{}", policy, budget)
                                  : "full";
  const std::string block_name = block_text(*this);
  if (block_name != "default") name += "/block=" + block_name;
  if (!bulk) name += "/no-bulk";
  if (strict) name += "/strict";
  return name;
}

BlockSize parse_block_size(const std::string& text) {
  for (const auto& [unit, name] : kUnits) {
    if (text == name) return {.unit = unit};
  }
  BlockSize block;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), block.n);
  if (error != std::errc() || end != text.data() + text.size() || block.n < 0) {
    throw_error(ErrorCode::kInvalidArgument,
                "[--block] expected a number of tokens, tile, row or frame, got '{}'", text);
  }
  return block;
}

std::vector<Setting> cross(const SettingsGrid& grid) {
  std::vector<Setting> settings;
  for (const int budget : grid.budgets) {
    if (budget < 0) {
      throw_error(ErrorCode::kInvalidArgument,
                  "[--kv-budget] expected at least 1 token or full, got {}", budget);
    }
    if (budget > 0) continue;
    for (const BlockSize& block : grid.blocks) {
      add_once({.block_unit = block.unit, .block = block.n}, settings);
    }
  }
  for (const std::string& policy : grid.policies) {
    for (const int budget : grid.budgets) {
      if (budget == 0) continue;
      if (policy == "full") {
        throw_error(ErrorCode::kInvalidArgument,
                    "[--policy] expected a policy that evicts for the budget {}, got full", budget);
      }
      for (const BlockSize& block : grid.blocks) {
        add_once({.policy = policy,
                  .budget = budget,
                  .block_unit = block.unit,
                  .block = block.n,
                  .bulk = grid.bulk,
                  .strict = grid.strict},
                 settings);
      }
    }
  }
  for (const int64_t resize : grid.resizes) {
    if (resize < 1) {
      throw_error(ErrorCode::kInvalidArgument, "[--resize] expected at least 1 token, got {}",
                  resize);
    }
    for (const BlockSize& block : grid.blocks) {
      add_once({.resize = resize, .block_unit = block.unit, .block = block.n}, settings);
    }
  }
  if (settings.empty()) {
    throw_error(ErrorCode::kInvalidArgument,
                "[eval] expected at least one setting, got none; try --kv-budget full,256");
  }
  return settings;
}

void write_setting(const Setting& setting, Json& record) {
  record["setting"] = setting.name();
  record["policy"] = setting.policy;
  record["budget"] = setting.budget == 0 ? Json("full") : Json(setting.budget);
  record["resize"] = setting.resize == 0 ? Json(nullptr) : Json(setting.resize);
  record["block"] = block_text(setting);
  record["bulk"] = setting.bulk;
  record["strict"] = setting.strict;
}

Setting read_setting(const JsonRecord& record) {
  Setting setting;
  setting.policy = record.text({"policy"});
  if (record.at("budget") != "full") {
    const std::optional<int64_t> budget = record.whole_number("budget");
    if (!budget || *budget < 1 || *budget > INT32_MAX) {
      record.fail("budget", "full or a number of tokens");
    }
    setting.budget = static_cast<int>(*budget);
  }
  if (setting.policy.empty() || (setting.policy == "full") != (setting.budget == 0)) {
    record.fail("policy", setting.budget == 0 ? "full, as the budget is" : "one that evicts");
  }
  if (record.has("resize")) {
    setting.resize = record.whole_number("resize").value_or(0);
    if (setting.resize < 1) record.fail("resize", "a number of tokens or null");
  }
  const std::string block = record.text({"block"});
  try {
    const BlockSize size = parse_block_size(block == "default" ? "0" : block);
    setting.block_unit = size.unit;
    setting.block = size.n;
  } catch (const Error&) {
    record.fail("block", "default, a number of tokens, tile, row or frame");
  }
  setting.bulk = record.truth("bulk");
  setting.strict = record.truth("strict");
  if (record.text({"setting"}) != setting.name()) {
    record.fail("setting", setting.name() + ", as the other fields say");
  }
  return setting;
}

}  // namespace plateau::eval

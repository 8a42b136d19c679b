#include "eval/run_settings.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"

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

Setting read_setting(const Json& record) {
  const std::string block = record.at("block").get<std::string>();
  const BlockSize size = parse_block_size(block == "default" ? "0" : block);
  const Json& budget = record.at("budget");
  const Json& resize = record.at("resize");
  Setting setting = {.policy = record.at("policy").get<std::string>(),
                     .budget = budget.is_string() ? 0 : budget.get<int>(),
                     .resize = resize.is_null() ? 0 : resize.get<int64_t>(),
                     .block_unit = size.unit,
                     .block = size.n,
                     .bulk = record.at("bulk").get<bool>(),
                     .strict = record.at("strict").get<bool>()};
  if (record.at("setting") != setting.name()) {
    throw_error(ErrorCode::kCorrupt, "[setting] expected {}, got {}", setting.name(),
                record.at("setting").dump());
  }
  return setting;
}

}  // namespace plateau::eval

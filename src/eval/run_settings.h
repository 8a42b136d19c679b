// The settings of an evaluation: policies x budgets x blocks, and lower resolutions. Pure.
// Tested by tests/eval/run_settings_test.cc.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "plateau/options.h"

namespace plateau::eval {

class JsonRecord;

/// What differs between the columns of a table.
struct Setting {
  std::string policy = "full";
  int budget = 0;                             // 0: the full cache
  int64_t resize = 0;                         // most visual tokens; 0: native detail
  BlockUnit block_unit = BlockUnit::kTokens;  // as KvOptions has them
  int block = 0;
  bool bulk = true;
  bool strict = false;

  bool operator==(const Setting&) const = default;

  /// "full", "snapkv:256", "resize:580", with "/block=64", "/no-bulk" and "/strict" where they
  /// are. Unique among settings.
  std::string name() const;
  /// No eviction, native detail: what the others are compared with.
  bool is_reference() const { return budget == 0 && resize == 0; }
};

struct BlockSize {
  BlockUnit unit = BlockUnit::kTokens;
  int n = 0;  // 0: the default
};

/// By number, "tile", "row" or "frame"; "0" is the default. Errors: kInvalidArgument.
BlockSize parse_block_size(const std::string& text);

struct SettingsGrid {
  std::vector<std::string> policies = {"snapkv"};
  std::vector<int> budgets = {0};     // 0: full, which is one setting for all policies
  std::vector<int64_t> resizes = {};  // each with the full cache
  std::vector<BlockSize> blocks = {{}};
  bool bulk = true;
  bool strict = false;
};

/// Full caches first, then policies in the order given, each with its budgets, then resizes; no
/// setting twice. Errors: kInvalidArgument (a number out of range, nothing to do).
std::vector<Setting> cross(const SettingsGrid& grid);

/// The fields that a setting adds to a record (docs/eval.md), and back.
void write_setting(const Setting& setting, nlohmann::ordered_json& record);
/// Errors: kCorrupt for a field that is missing, wrong, or contradicts another.
Setting read_setting(const JsonRecord& record);

}  // namespace plateau::eval

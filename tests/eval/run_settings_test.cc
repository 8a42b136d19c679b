#include "eval/run_settings.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "eval/eval_test_support.h"
#include "eval/readers/json_record.h"

namespace plateau::eval {
namespace {

std::vector<std::string> names(const SettingsGrid& grid) {
  std::vector<std::string> result;
  for (const Setting& setting : cross(grid)) result.push_back(setting.name());
  return result;
}

TEST(Settings, AreTheCrossProductWithEachFullCacheOnce) {
  EXPECT_THAT(names({.policies = {"snapkv", "keydiff"}, .budgets = {64, 0, 256}, .resizes = {184}}),
              ::testing::ElementsAre("full", "snapkv:64", "snapkv:256", "keydiff:64", "keydiff:256",
                                     "resize:184"));
  EXPECT_THAT(names({.policies = {"snapkv"},
                     .budgets = {0, 64, 64},
                     .blocks = {{}, {.n = 32}, {.unit = BlockUnit::kTile}},
                     .bulk = false,
                     .strict = true}),
              ::testing::ElementsAre(
                  "full", "full/block=32", "full/block=tile", "snapkv:64/no-bulk/strict",
                  "snapkv:64/block=32/no-bulk/strict", "snapkv:64/block=tile/no-bulk/strict"));
}

TEST(Settings, OfNoUseAreRefused) {
  for (const SettingsGrid& grid :
       {SettingsGrid{.policies = {"full"}, .budgets = {64}}, SettingsGrid{.budgets = {-1}},
        SettingsGrid{.resizes = {0}}, SettingsGrid{.policies = {}, .budgets = {64}}}) {
    EXPECT_EQ(code_of([&] { cross(grid); }), ErrorCode::kInvalidArgument);
  }
}

TEST(Settings, BlockSizesAreParsedWhole) {
  EXPECT_EQ(parse_block_size("0").n, 0);
  EXPECT_EQ(parse_block_size("64").n, 64);
  EXPECT_EQ(parse_block_size("row").unit, BlockUnit::kRow);
  for (const char* text : {"", "-1", "64x", "tiles", "99999999999"}) {
    EXPECT_EQ(code_of([&] { parse_block_size(text); }), ErrorCode::kInvalidArgument) << text;
  }
}

TEST(Settings, ComeBackFromARecord) {
  for (const Setting& setting : cross({.policies = {"mix"},
                                .budgets = {0, 32},
                                .resizes = {5},
                                .blocks = {{}, {.n = 7}, {.unit = BlockUnit::kFrame}},
                                .bulk = false})) {
    nlohmann::ordered_json record;
    write_setting(setting, record);
    EXPECT_EQ(read_setting(JsonRecord(nlohmann::json(record), "place")), setting) << record.dump();
    record["setting"] = "another";
    EXPECT_EQ(code_of([&] { read_setting(JsonRecord(nlohmann::json(record), "place")); }),
              ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace plateau::eval

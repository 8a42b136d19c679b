// The same setting with the bulk stage and without, side by side: what the figures of `plateau
// bench` and of `plateau eval` share. Tested by tests/report/figures_test.cc.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report/figure.h"

namespace plateau::report {

template <typename Record>
struct BulkPair {
  std::string name;
  const Record* bulk = nullptr;
  const Record* blocks = nullptr;
};

/// Records under a budget that were measured both ways, ascending by `name_of(record)`, which says
/// all that the two have in common. Of several with one name, the last.
template <typename Record, typename Name>
std::vector<BulkPair<Record>> bulk_pairs(const std::vector<const Record*>& records,
                                         const Name& name_of) {
  std::map<std::string, BulkPair<Record>> by_name;
  for (const Record* record : records) {
    if (!record->budget) continue;
    const std::string name = name_of(*record);
    BulkPair<Record>& pair = by_name[name];
    pair.name = name;
    (record->bulk ? pair.bulk : pair.blocks) = record;
  }
  std::vector<BulkPair<Record>> pairs;
  for (auto& [name, pair] : by_name) {
    if (pair.bulk != nullptr && pair.blocks != nullptr) pairs.push_back(std::move(pair));
  }
  return pairs;
}

template <typename Record>
std::vector<const Record*> records_of(const std::vector<BulkPair<Record>>& pairs) {
  std::vector<const Record*> records;
  for (const BulkPair<Record>& pair : pairs) {
    records.push_back(pair.bulk);
    records.push_back(pair.blocks);
  }
  return records;
}

/// Two bars for each pair; no series where there is no pair. `add(series, record)` appends a bar's
/// height and the ends of its error bar.
template <typename Record, typename Add>
Plot bulk_bars(const std::vector<BulkPair<Record>>& pairs, const std::string& y_title,
               const Add& add) {
  Series bulk;
  bulk.name = "bulk, then blocks";
  Series blocks;
  blocks.name = "blocks only";
  for (const BulkPair<Record>& pair : pairs) {
    bulk.labels.push_back(pair.name);
    blocks.labels.push_back(pair.name);
    add(bulk, *pair.bulk);
    add(blocks, *pair.blocks);
  }
  Plot plot = {.mark = Mark::kBars,
               .x = {.title = "", .log = false},
               .y = {.title = y_title, .log = false},
               .series = {}};
  if (!pairs.empty()) plot.series = {std::move(bulk), std::move(blocks)};
  return plot;
}

}  // namespace plateau::report

#include "report/bench_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace plateau::report {
namespace {

std::set<size_t> sources_of(const std::vector<const BenchRecord*>& records) {
  std::set<size_t> sources;
  for (const BenchRecord* r : records) sources.insert(r->source);
  return sources;
}

}  // namespace

std::string without_block(const BenchRecord& r) {
  std::string name = r.budget ? fmt::format("{}, {} tokens", r.policy, *r.budget) : "full cache";
  if (r.cache_types != "f16/f16") name += ", " + r.cache_types;
  if (r.strict) name += ", strict";
  return name;
}

std::string setting_name(const BenchRecord& r) {
  std::string name = without_block(r);
  if (!r.bulk) name += ", no bulk";
  if (r.block != "0") name += ", block " + r.block;
  return name;
}

std::vector<Subject> subjects_of(const std::vector<BenchRecord>& records) {
  std::vector<Subject> subjects;
  std::map<std::string, std::map<std::string, size_t>> place_of;  // by subject and point
  for (const BenchRecord& r : records) {
    const std::string title =
        fmt::format("{}, {}{}", r.model, r.machine, r.input == "tokens" ? "" : ", with encoder");
    auto subject = std::find_if(subjects.begin(), subjects.end(),
                                [&](const Subject& s) { return s.title == title; });
    if (subject == subjects.end()) {
      subject = subjects.insert(subjects.end(), {title, {}});
    }
    const std::string point = fmt::format("{} {} {}", setting_name(r), r.visual_tokens, r.input);
    const auto [place, is_new] = place_of[title].emplace(point, subject->records.size());
    if (is_new) {
      subject->records.push_back(&r);
    } else {
      subject->records[place->second] = &r;
    }
  }
  for (Subject& subject : subjects) {
    std::stable_sort(subject.records.begin(), subject.records.end(),
                     [](const BenchRecord* a, const BenchRecord* b) {
                       return std::pair(a->visual_tokens, a->budget.has_value()) <
                              std::pair(b->visual_tokens, b->budget.has_value());
                     });
  }
  return subjects;
}

double to_mib(int64_t n_bytes) { return static_cast<double>(n_bytes) / (1 << 20); }
std::string mib(int64_t n_bytes) { return format_number(to_mib(n_bytes)); }

std::string seconds(const Spread& ms) {
  return format_spread(ms.median / 1000, ms.min / 1000, ms.max / 1000);
}

Table table_of(const std::vector<const BenchRecord*>& records, const Columns& columns) {
  Table table;
  table.header = {"visual tokens", "setting"};
  for (const auto& [title, value] : columns) table.header.push_back(title);
  for (const BenchRecord* r : records) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {std::to_string(r->visual_tokens), setting_name(*r)};
    for (const auto& [title, value] : columns) row.push_back(value(*r));
  }
  return table;
}

void add_figure(Section& section, const Subject& subject, Plot plot, Table table) {
  if (plot.series.empty() || table.rows.empty()) return;
  section.figures.push_back({.title = subject.title,
                             .plot = std::move(plot),
                             .table = std::move(table),
                             .note = "",
                             .sources = sources_of(subject.records)});
}

Subject only(const Subject& subject, const std::function<bool(const BenchRecord&)>& passes) {
  Subject result = {subject.title, {}};
  for (const BenchRecord* r : subject.records) {
    if (passes(*r)) result.records.push_back(r);
  }
  return result;
}

}  // namespace plateau::report

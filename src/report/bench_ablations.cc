#include "report/bench_ablations.h"

#include <fmt/format.h>

#include <map>

#include "report/bulk_pairs.h"

namespace plateau::report {
namespace {

void add_seconds(Series& series, const Spread& ms) {
  series.y.push_back(ms.median / 1000);
  series.low.push_back(ms.min / 1000);
  series.high.push_back(ms.max / 1000);
}

}  // namespace

Section block_section(const std::vector<Subject>& subjects) {
  Section section = {"block",
                     "Block size",
                     "The same prompt and budget with blocks of several sizes: small blocks keep "
                     "memory low, large ones need fewer evictions.",
                     {}};
  for (const Subject& all : subjects) {
    std::map<std::string, std::map<double, const BenchRecord*>> groups;
    for (const BenchRecord* r : all.records) {
      if (const auto block = block_number(r->block)) {
        groups[fmt::format("{}{}, {} visual tokens", without_block(*r), r->bulk ? "" : ", no bulk",
                           r->visual_tokens)][*block] = r;
      }
    }
    std::erase_if(groups, [](const auto& group) { return group.second.size() < 2; });
    Subject subject = {all.title, {}};
    Plot time = {.mark = Mark::kLines,
                 .x = {.title = "tokens per block", .log = true},
                 .y = {.title = "time to first token, s", .log = false},
                 .series = {}};
    Plot memory = time;
    memory.y.title = "peak memory, MiB";
    for (const auto& [name, by_block] : groups) {
      Series seconds_series;
      seconds_series.name = name;
      Series memory_series = seconds_series;
      for (const auto& [block, r] : by_block) {
        subject.records.push_back(r);
        seconds_series.x.push_back(block);
        add_seconds(seconds_series, r->ttft_ms);
        if (!r->isolated) continue;
        memory_series.x.push_back(block);
        memory_series.y.push_back(to_mib(r->peak_anon_bytes));
      }
      time.series.push_back(std::move(seconds_series));
      if (!memory_series.x.empty()) memory.series.push_back(std::move(memory_series));
    }
    const Table table = table_of(
        subject.records, {{"TTFT, s", [](const BenchRecord& r) { return seconds(r.ttft_ms); }},
                          {"peak, MiB", [](const BenchRecord& r) {
                             return r.isolated ? mib(r.peak_anon_bytes) : "-";
                           }}});
    add_figure(section, subject, std::move(time), table);
    add_figure(section, subject, std::move(memory), table);
  }
  return section;
}

Section bulk_section(const std::vector<Subject>& subjects) {
  Section section = {"bulk",
                     "Bulk against block-only",
                     "What fits the budget may run in larger blocks first (bulk), or in blocks of "
                     "the same size from the start.",
                     {}};
  for (const Subject& all : subjects) {
    const auto pairs = bulk_pairs(all.records, [](const BenchRecord& r) {
      return fmt::format("{}\n{} tokens{}", without_block(r), r.visual_tokens,
                         r.block == "0" ? "" : ", block " + r.block);
    });
    const Subject subject = {all.title, records_of(pairs)};
    add_figure(
        section, subject,
        bulk_bars(pairs, "time to first token, s",
                  [](Series& series, const BenchRecord& r) { add_seconds(series, r.ttft_ms); }),
        table_of(subject.records,
                 {{"TTFT, s", [](const BenchRecord& r) { return seconds(r.ttft_ms); }},
                  {"peak, MiB", [](const BenchRecord& r) { return mib(r.peak_anon_bytes); }}}));
  }
  return section;
}

}  // namespace plateau::report

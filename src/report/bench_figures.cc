#include "report/bench_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <set>

namespace plateau::report {
namespace {

constexpr double kMiB = 1 << 20;
constexpr const char* kLlamaName = "llama.cpp, full cache";

/// One model on one machine with one number of threads.
struct Subject {
  std::string title;
  std::vector<const BenchRecord*> records;  // one per point
};

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

Role role_of(const BenchRecord& r) { return r.budget ? Role::kOther : Role::kFullCache; }

std::vector<Subject> subjects_of(const Records& records) {
  std::vector<Subject> subjects;
  std::map<std::string, std::map<std::string, size_t>> place_of;  // by subject and point
  for (const BenchRecord& r : records.bench) {
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

struct Value {
  double y = 0, low = 0, high = 0;
};
using ValueOf = std::function<std::optional<Value>(const BenchRecord&)>;

/// A series per setting over visual tokens. Where some have several points, those with one are of
/// another sweep and left out.
std::vector<Series> curves(const Subject& subject, const ValueOf& value_of, bool has_error_bars) {
  std::vector<Series> series;
  for (const BenchRecord* r : subject.records) {
    const std::optional<Value> value = value_of(*r);
    if (!value) continue;
    const std::string name = setting_name(*r);
    auto found =
        std::find_if(series.begin(), series.end(), [&](const Series& s) { return s.name == name; });
    if (found == series.end()) {
      Series fresh;
      fresh.name = name;
      fresh.role = role_of(*r);
      found = series.insert(series.end(), std::move(fresh));
    }
    found->x.push_back(static_cast<double>(r->visual_tokens));
    found->y.push_back(value->y);
    if (!has_error_bars) continue;
    found->low.push_back(value->low);
    found->high.push_back(value->high);
  }
  if (std::any_of(series.begin(), series.end(), [](const Series& s) { return s.x.size() > 1; })) {
    std::erase_if(series, [](const Series& s) { return s.x.size() < 2; });
  }
  std::stable_partition(series.begin(), series.end(),
                        [](const Series& s) { return s.role == Role::kFullCache; });
  return series;
}

/// llama.cpp beside ours: over all records of one size, the median of medians and the outer ends.
std::optional<Series> llama_curve(
    const Subject& subject, const std::function<std::optional<Spread>(const BenchRecord&)>& of,
    double scale) {
  std::map<int64_t, std::vector<Spread>> by_size;
  for (const BenchRecord* r : subject.records) {
    if (const auto spread = r->llama ? of(*r) : std::nullopt) {
      by_size[r->visual_tokens].push_back(*spread);
    }
  }
  if (by_size.empty()) return std::nullopt;
  Series series;
  series.name = kLlamaName;
  series.role = Role::kLlamaCpp;
  for (auto& [size, spreads] : by_size) {
    std::sort(spreads.begin(), spreads.end(),
              [](const Spread& a, const Spread& b) { return a.median < b.median; });
    double low = spreads.front().min;
    double high = spreads.front().max;
    for (const Spread& spread : spreads) {
      low = std::min(low, spread.min);
      high = std::max(high, spread.max);
    }
    series.x.push_back(static_cast<double>(size));
    series.y.push_back(spreads[spreads.size() / 2].median * scale);
    series.low.push_back(low * scale);
    series.high.push_back(high * scale);
  }
  return series;
}

Value in_mib(int64_t n_bytes) { return {.y = static_cast<double>(n_bytes) / kMiB}; }
std::string mib(int64_t n_bytes) { return format_number(static_cast<double>(n_bytes) / kMiB); }

std::string seconds(const Spread& ms) {
  return format_spread(ms.median / 1000, ms.min / 1000, ms.max / 1000);
}

using Columns = std::vector<std::pair<std::string, std::function<std::string(const BenchRecord&)>>>;

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

std::set<size_t> sources_of(const std::vector<const BenchRecord*>& records) {
  std::set<size_t> sources;
  for (const BenchRecord* r : records) sources.insert(r->source);
  return sources;
}

void add_figure(Section& section, const Subject& subject, Plot plot, Table table,
                std::string note = "") {
  if (plot.series.empty() || table.rows.empty()) return;
  section.figures.push_back({.title = subject.title,
                             .plot = std::move(plot),
                             .table = std::move(table),
                             .note = std::move(note),
                             .sources = sources_of(subject.records)});
}

/// Records of the subject that pass.
Subject only(const Subject& subject, const std::function<bool(const BenchRecord&)>& passes) {
  Subject result = {subject.title, {}};
  for (const BenchRecord* r : subject.records) {
    if (passes(*r)) result.records.push_back(r);
  }
  return result;
}

Section memory_section(const std::vector<Subject>& subjects) {
  Section section = {
      "memory",
      "Peak memory",
      "Highest resident anonymous memory (RssAnon) of a process that answers one prompt. Weights "
      "are mapped from the file and not in it.",
      {}};
  for (const Subject& all : subjects) {
    const Subject subject = only(all, [](const BenchRecord& r) { return r.isolated; });
    add_figure(
        section, subject,
        {.mark = Mark::kLines,
         .x = {.title = "visual tokens", .log = false},
         .y = {.title = "peak memory, MiB", .log = false},
         .series = curves(
             subject, [](const BenchRecord& r) { return in_mib(r.peak_anon_bytes); },
             /*has_error_bars=*/false)},
        table_of(
            subject.records,
            {{"peak, MiB", [](const BenchRecord& r) { return mib(r.peak_anon_bytes); }},
             {"planned, MiB",
              [](const BenchRecord& r) {
                return r.peak_anon_bytes_planned ? mib(*r.peak_anon_bytes_planned) : "-";
              }},
             {"cache, MiB", [](const BenchRecord& r) { return mib(r.kv_bytes); }},
             {"decoder compute, MiB", [](const BenchRecord& r) { return mib(r.compute_bytes); }}}));
  }
  return section;
}

Section cache_section(const std::vector<Subject>& subjects) {
  Section section = {"cache",
                     "Cache size",
                     "Bytes of keys and values that are allocated, and what the plan said before "
                     "any work.",
                     {}};
  for (const Subject& subject : subjects) {
    add_figure(
        section, subject,
        {.mark = Mark::kLines,
         .x = {.title = "visual tokens", .log = false},
         .y = {.title = "keys and values, MiB", .log = false},
         .series = curves(
             subject, [](const BenchRecord& r) { return in_mib(r.kv_bytes); },
             /*has_error_bars=*/false)},
        table_of(
            subject.records,
            {{"allocated, bytes", [](const BenchRecord& r) { return std::to_string(r.kv_bytes); }},
             {"planned, bytes",
              [](const BenchRecord& r) { return std::to_string(r.kv_bytes_planned); }}}));
  }
  return section;
}

Section ttft_section(const std::vector<Subject>& subjects) {
  Section section = {"ttft",
                     "Time to first token",
                     "Medians; bars reach from the fastest to the slowest run. llama.cpp is the "
                     "pinned build, linked into the same program, given the same rows, runs "
                     "alternating with ours.",
                     {}};
  for (const Subject& subject : subjects) {
    std::vector<Series> series = curves(
        subject,
        [](const BenchRecord& r) {
          return Value{r.ttft_ms.median / 1000, r.ttft_ms.min / 1000, r.ttft_ms.max / 1000};
        },
        /*has_error_bars=*/true);
    if (auto llama = llama_curve(
            subject, [](const BenchRecord& r) { return std::optional(r.llama->ttft_ms); }, 1e-3)) {
      series.push_back(std::move(*llama));
    }
    add_figure(
        section, subject,
        {.mark = Mark::kLines,
         .x = {.title = "visual tokens", .log = false},
         .y = {.title = "time to first token, s", .log = false},
         .series = std::move(series)},
        table_of(subject.records,
                 {{"TTFT, s", [](const BenchRecord& r) { return seconds(r.ttft_ms); }},
                  {"of it encoding, s",
                   [](const BenchRecord& r) { return format_number(r.encode_ms / 1000); }},
                  {"llama.cpp, s",
                   [](const BenchRecord& r) { return r.llama ? seconds(r.llama->ttft_ms) : "-"; }},
                  {"times as fast", [](const BenchRecord& r) {
                     return r.llama ? format_spread(r.llama->speedup.median, r.llama->speedup.min,
                                                    r.llama->speedup.max)
                                    : "-";
                   }}}));
  }
  return section;
}

Section decode_section(const std::vector<Subject>& subjects) {
  Section section = {"decode",
                     "Decoding speed",
                     "Tokens per second after the first one, with the cache as the prompt left it.",
                     {}};
  for (const Subject& all : subjects) {
    const Subject subject =
        only(all, [](const BenchRecord& r) { return r.decode_tok_s.has_value(); });
    std::vector<Series> series = curves(
        subject,
        [](const BenchRecord& r) {
          return Value{r.decode_tok_s->median, r.decode_tok_s->min, r.decode_tok_s->max};
        },
        /*has_error_bars=*/true);
    if (auto llama = llama_curve(
            subject, [](const BenchRecord& r) { return r.llama->decode_tok_s; }, 1)) {
      series.push_back(std::move(*llama));
    }
    add_figure(section, subject,
               {.mark = Mark::kLines,
                .x = {.title = "visual tokens in the prompt", .log = false},
                .y = {.title = "decoded tokens per second", .log = false},
                .series = std::move(series)},
               table_of(subject.records,
                        {{"tokens/s",
                          [](const BenchRecord& r) {
                            return format_spread(r.decode_tok_s->median, r.decode_tok_s->min,
                                                 r.decode_tok_s->max);
                          }},
                         {"llama.cpp",
                          [](const BenchRecord& r) {
                            return r.llama && r.llama->decode_tok_s
                                       ? format_number(r.llama->decode_tok_s->median)
                                       : "-";
                          }},
                         {"times as fast", [](const BenchRecord& r) {
                            return r.llama && r.llama->decode_speedup
                                       ? format_number(r.llama->decode_speedup->median)
                                       : "-";
                          }}}));
  }
  return section;
}

Section profile_section(const std::vector<Subject>& subjects) {
  Section section = {"profile",
                     "Where the time goes",
                     "One prefill with every graph node timed by itself, which slows it down: the "
                     "shares count, not the sums.",
                     {}};
  struct Part {
    const char* name;
    double (*ms)(const BenchRecord&);
  };
  static constexpr Part kParts[] = {
      {"linear layers", [](const BenchRecord& r) { return r.profile->linear_ms; }},
      {"attention", [](const BenchRecord& r) { return r.profile->attention_ms; }},
      {"eviction signals", [](const BenchRecord& r) { return r.profile->signals_ms; }},
      {"norms and the rest", [](const BenchRecord& r) { return r.profile->other_ms; }},
      {"score, select, compact",
       [](const BenchRecord& r) { return r.score_ms + r.select_ms + r.compact_ms; }},
  };
  for (const Subject& all : subjects) {
    const Subject subject = only(all, [](const BenchRecord& r) { return r.profile.has_value(); });
    Plot plot = {.mark = Mark::kStackedBars,
                 .x = {.title = "", .log = false},
                 .y = {.title = "share of prefill, %", .log = false},
                 .series = {}};
    Columns columns;
    for (const Part& part : kParts) {
      Series series;
      series.name = part.name;
      const auto share = [ms = part.ms](const BenchRecord& r) {
        double sum = 0;
        for (const Part& each : kParts) sum += each.ms(r);
        return sum > 0 ? 100 * ms(r) / sum : 0;
      };
      for (const BenchRecord* r : subject.records) {
        series.labels.push_back(fmt::format("{} tokens: {}", r->visual_tokens, setting_name(*r)));
        series.y.push_back(share(*r));
      }
      if (!subject.records.empty()) plot.series.push_back(std::move(series));
      columns.emplace_back(std::string(part.name) + ", %",
                           [share](const BenchRecord& r) { return format_number(share(r)); });
    }
    columns.emplace_back("profiled prefill, s", [](const BenchRecord& r) {
      return format_number(r.profile->prefill_ms / 1000);
    });
    add_figure(section, subject, std::move(plot), table_of(subject.records, columns));
  }
  return section;
}

std::optional<double> block_number(const BenchRecord& r) {
  int value = 0;
  const auto [end, error] = std::from_chars(r.block.data(), r.block.data() + r.block.size(), value);
  if (error != std::errc() || end != r.block.data() + r.block.size() || value == 0) return {};
  return value;
}

/// Curves over the block size, for prompts measured with at least two.
Section block_section(const std::vector<Subject>& subjects) {
  Section section = {"block",
                     "Block size",
                     "The same prompt and budget with blocks of several sizes: small blocks keep "
                     "memory low, large ones need fewer evictions.",
                     {}};
  for (const Subject& all : subjects) {
    std::map<std::string, std::map<double, const BenchRecord*>> groups;
    for (const BenchRecord* r : all.records) {
      if (const auto block = block_number(*r)) {
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
        seconds_series.y.push_back(r->ttft_ms.median / 1000);
        seconds_series.low.push_back(r->ttft_ms.min / 1000);
        seconds_series.high.push_back(r->ttft_ms.max / 1000);
        if (!r->isolated) continue;
        memory_series.x.push_back(block);
        memory_series.y.push_back(static_cast<double>(r->peak_anon_bytes) / kMiB);
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

/// Pairs that differ in the bulk stage alone.
Section bulk_section(const std::vector<Subject>& subjects) {
  Section section = {"bulk",
                     "Bulk against block-only",
                     "What fits the budget may run in larger blocks first (bulk), or in blocks of "
                     "the same size from the start.",
                     {}};
  for (const Subject& all : subjects) {
    std::map<std::string, std::pair<const BenchRecord*, const BenchRecord*>> pairs;
    for (const BenchRecord* r : all.records) {
      if (!r->budget) continue;
      const std::string name = fmt::format("{}\n{} tokens{}", without_block(*r), r->visual_tokens,
                                           r->block == "0" ? "" : ", block " + r->block);
      (r->bulk ? pairs[name].first : pairs[name].second) = r;
    }
    Subject subject = {all.title, {}};
    Series bulk;
    bulk.name = "bulk, then blocks";
    Series blocks;
    blocks.name = "blocks only";
    const auto add = [&](Series& series, const std::string& name, const BenchRecord& r) {
      subject.records.push_back(&r);
      series.labels.push_back(name);
      series.y.push_back(r.ttft_ms.median / 1000);
      series.low.push_back(r.ttft_ms.min / 1000);
      series.high.push_back(r.ttft_ms.max / 1000);
    };
    for (const auto& [name, pair] : pairs) {
      if (pair.first == nullptr || pair.second == nullptr) continue;
      add(bulk, name, *pair.first);
      add(blocks, name, *pair.second);
    }
    Plot plot = {.mark = Mark::kBars,
                 .x = {.title = "", .log = false},
                 .y = {.title = "time to first token, s", .log = false},
                 .series = {}};
    if (!bulk.y.empty()) plot.series = {bulk, blocks};
    add_figure(
        section, subject, std::move(plot),
        table_of(subject.records,
                 {{"TTFT, s", [](const BenchRecord& r) { return seconds(r.ttft_ms); }},
                  {"peak, MiB", [](const BenchRecord& r) { return mib(r.peak_anon_bytes); }}}));
  }
  return section;
}

}  // namespace

std::vector<Section> bench_sections(const Records& records) {
  const std::vector<Subject> subjects = subjects_of(records);
  std::vector<Section> sections = {memory_section(subjects),  cache_section(subjects),
                                   ttft_section(subjects),    decode_section(subjects),
                                   profile_section(subjects), block_section(subjects),
                                   bulk_section(subjects)};
  std::erase_if(sections, [](const Section& s) { return s.figures.empty(); });
  return sections;
}

std::vector<KeyFigure> bench_key_figures(const Records& records) {
  std::vector<KeyFigure> figures;
  const BenchRecord* fastest = nullptr;
  for (const BenchRecord& r : records.bench) {
    if (r.llama && r.budget && (fastest == nullptr || r.visual_tokens > fastest->visual_tokens)) {
      fastest = &r;
    }
  }
  const BenchRecord* full = nullptr;
  const BenchRecord* bounded = nullptr;
  for (const BenchRecord& a : records.bench) {
    for (const BenchRecord& b : records.bench) {
      const bool comparable = !a.budget && b.budget && a.isolated && b.isolated &&
                              a.model == b.model && a.visual_tokens == b.visual_tokens &&
                              a.input == b.input && a.cache_types == b.cache_types;
      if (comparable && (full == nullptr || a.visual_tokens > full->visual_tokens)) {
        full = &a;
        bounded = &b;
      }
    }
  }
  if (full != nullptr) {
    figures.push_back(
        {fmt::format("{} MiB", mib(bounded->peak_anon_bytes)),
         fmt::format("peak memory at {} visual tokens ({}); {} MiB with the full cache",
                     full->visual_tokens, setting_name(*bounded), mib(full->peak_anon_bytes))});
  }
  if (fastest != nullptr) {
    figures.push_back(
        {fmt::format("{}\u00d7", format_number(fastest->llama->speedup.median)),
         fmt::format("as fast to the first token as llama.cpp at {} visual tokens ({})",
                     fastest->visual_tokens, setting_name(*fastest))});
  }
  return figures;
}

}  // namespace plateau::report

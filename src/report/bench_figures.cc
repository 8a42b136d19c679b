#include "report/bench_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "report/bench_ablations.h"
#include "report/bench_subject.h"

namespace plateau::report {
namespace {

constexpr const char* kLlamaName = "llama.cpp, full cache";

Role role_of(const BenchRecord& r) { return r.budget ? Role::kOther : Role::kFullCache; }

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
    Series& curve = series_of(series, setting_name(*r), role_of(*r));
    curve.x.push_back(static_cast<double>(r->visual_tokens));
    curve.y.push_back(value->y);
    if (!has_error_bars) continue;
    curve.low.push_back(value->low);
    curve.high.push_back(value->high);
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

Value in_mib(int64_t n_bytes) { return {.y = to_mib(n_bytes)}; }

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

}  // namespace

std::vector<Section> bench_sections(const Records& records) {
  const std::vector<Subject> subjects = subjects_of(records.bench);
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

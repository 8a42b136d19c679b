#include "report/eval_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/plural.h"
#include "base/statistics.h"
#include "report/bulk_pairs.h"

namespace plateau::report {
namespace {

using Settings = std::vector<const EvalSetting*>;

/// The settings of one question set and model.
struct Subject {
  std::string title;
  Settings settings;
};

bool is_full(const EvalSetting& s) { return !s.budget && !s.resize; }
bool is_default_block(const EvalSetting& s) { return s.block == "default" || s.block == "0"; }

/// Without the budget.
std::string family(const EvalSetting& s) {
  std::string name = s.resize ? "lower resolution" : is_full(s) ? "full cache" : s.policy;
  if (!is_default_block(s)) name += ", block " + s.block;
  if (!s.bulk) name += ", no bulk";
  if (s.strict) name += ", strict";
  return name;
}

std::vector<Subject> subjects_of(const Records& records) {
  std::vector<Subject> subjects;
  for (const EvalSetting& s : records.eval) {
    if (s.n == 0) continue;
    auto found = std::find_if(subjects.begin(), subjects.end(),
                              [&](const Subject& subject) { return subject.title == s.set; });
    if (found == subjects.end()) found = subjects.insert(subjects.end(), {s.set, {}});
    found->settings.push_back(&s);
  }
  return subjects;
}

void add_height(Series& series, const EvalSetting& s) {
  series.y.push_back(s.accuracy);
  series.low.push_back(std::max(0.0, s.accuracy - s.standard_error));
  series.high.push_back(std::min(1.0, s.accuracy + s.standard_error));
}

void add_accuracy(Series& series, double x, const EvalSetting& s) {
  series.x.push_back(x);
  series.labels.push_back(s.name);
  add_height(series, s);
}

void sort_by_x(std::vector<Series>& all) {
  for (Series& s : all) {
    std::vector<size_t> order(s.x.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return s.x[a] < s.x[b]; });
    Series sorted;
    sorted.name = s.name;
    sorted.role = s.role;
    for (const size_t i : order) {
      sorted.x.push_back(s.x[i]);
      sorted.y.push_back(s.y[i]);
      sorted.low.push_back(s.low[i]);
      sorted.high.push_back(s.high[i]);
      sorted.labels.push_back(s.labels[i]);
    }
    s = std::move(sorted);
  }
}

/// Where some have several points, those with one belong to another figure.
void drop_single_points(std::vector<Series>& all) {
  const auto is_single = [](const Series& s) { return s.x.size() < 2; };
  if (std::all_of(all.begin(), all.end(), is_single)) return;
  std::erase_if(all, is_single);
}

Table table_of(const Settings& settings) {
  Table table;
  table.header = {"setting",     "questions",          "accuracy",   "visual tokens", "kept tokens",
                  "needle kept", "needle tokens kept", "cache, MiB", "prefill, s"};
  for (const EvalSetting* s : settings) {
    table.rows.push_back(
        {s->name,
         s->n_errors == 0 ? std::to_string(s->n)
                          : fmt::format("{} ({})", s->n, counted(s->n_errors, "error")),
         fmt::format("{:.3f} \u00b1 {:.3f}", s->accuracy, s->standard_error),
         fmt::format("{:.0f}", s->visual_tokens), fmt::format("{:.0f}", s->kept_tokens),
         s->n_needle > 0 ? fmt::format("{:.3f}", s->any_share) : "-",
         s->n_needle > 0 ? fmt::format("{:.3f}", s->token_share) : "-",
         format_number(static_cast<double>(s->kv_bytes) / (1 << 20)),
         format_number(s->prefill_ms / 1000)});
  }
  return table;
}

void add_figure(Section& section, const std::string& title, Plot plot, const Settings& settings,
                std::string note = "") {
  if (plot.series.empty()) return;
  Figure figure = {.title = title,
                   .plot = std::move(plot),
                   .table = table_of(settings),
                   .note = std::move(note),
                   .sources = {}};
  for (const EvalSetting* s : settings) figure.sources.insert(s->source);
  section.figures.push_back(std::move(figure));
}

Settings only(const Settings& settings, const std::function<bool(const EvalSetting&)>& passes) {
  Settings result;
  for (const EvalSetting* s : settings) {
    if (passes(*s)) result.push_back(s);
  }
  return result;
}

/// The full cache as a level line from the smallest to the largest x of the others.
void add_level(std::vector<Series>& all, const Settings& settings) {
  const auto full = std::find_if(settings.begin(), settings.end(), [](const EvalSetting* s) {
    return is_full(*s) && is_default_block(*s);
  });
  if (full == settings.end() || all.empty()) return;
  double low = all.front().x.front();
  double high = low;
  for (const Series& series : all) {
    for (const double x : series.x) {
      low = std::min(low, x);
      high = std::max(high, x);
    }
  }
  Series level;
  level.name = "full cache";
  level.role = Role::kFullCache;
  add_accuracy(level, low, **full);
  if (high > low) add_accuracy(level, high, **full);
  all.insert(all.begin(), std::move(level));
}

Section accuracy_section(const std::vector<Subject>& subjects) {
  Section section = {"accuracy",
                     "Accuracy under a budget",
                     "Mean score of the answers; bars are one standard error. The same questions "
                     "for all settings.",
                     {}};
  for (const Subject& subject : subjects) {
    const Settings shown = only(subject.settings, [](const EvalSetting& s) {
      return !s.resize && (is_full(s) ? is_default_block(s) : true);
    });
    std::vector<Series> series;
    for (const EvalSetting* s : shown) {
      if (s->budget) {
        add_accuracy(series_of(series, family(*s), Role::kOther), static_cast<double>(*s->budget),
                     *s);
      }
    }
    sort_by_x(series);
    drop_single_points(series);
    add_level(series, shown);
    add_figure(section, subject.title,
               {.mark = Mark::kLines,
                .x = {.title = "tokens kept per layer and head", .log = true},
                .y = {.title = "accuracy", .log = false},
                .series = std::move(series)},
               shown);
  }
  return section;
}

Section resolution_section(const std::vector<Subject>& subjects) {
  Section section = {"resolution",
                     "Lower resolution against compression",
                     "Two ways to hold fewer visual tokens: scale the picture down, or look at all "
                     "of it and evict.",
                     {}};
  for (const Subject& subject : subjects) {
    const bool has_resize = std::any_of(subject.settings.begin(), subject.settings.end(),
                                        [](const EvalSetting* s) { return s->resize.has_value(); });
    const Settings shown = only(subject.settings, [](const EvalSetting& s) {
      return is_default_block(s) && s.bulk && !s.strict;
    });
    std::vector<Series> series;
    for (const EvalSetting* s : shown) {
      if (is_full(*s)) continue;
      const double x = s->resize ? s->visual_tokens : static_cast<double>(*s->budget);
      add_accuracy(series_of(series, family(*s), Role::kOther), x, *s);
    }
    sort_by_x(series);
    add_level(series, shown);
    if (!has_resize) series.clear();
    add_figure(section, subject.title,
               {.mark = Mark::kLines,
                .x = {.title = "tokens held (kept, or made at the lower resolution)", .log = true},
                .y = {.title = "accuracy", .log = false},
                .series = std::move(series)},
               shown);
  }
  return section;
}

Section block_section(const std::vector<Subject>& subjects) {
  Section section = {"block-accuracy",
                     "Accuracy and block size",
                     "The same budget with blocks of several sizes.",
                     {}};
  for (const Subject& subject : subjects) {
    std::map<std::string, Settings> groups;
    for (const EvalSetting* s : subject.settings) {
      if (s->resize || !block_number(s->block)) continue;
      groups[is_full(*s) ? "full cache"
                         : fmt::format("{}, {} tokens{}", s->policy, *s->budget,
                                       s->bulk ? "" : ", no bulk")]
          .push_back(s);
    }
    std::erase_if(groups, [](const auto& group) { return group.second.size() < 2; });
    std::vector<Series> series;
    Settings shown;
    for (const auto& [name, settings] : groups) {
      for (const EvalSetting* s : settings) {
        shown.push_back(s);
        add_accuracy(series_of(series, name, is_full(*s) ? Role::kFullCache : Role::kOther),
                     *block_number(s->block), *s);
      }
    }
    sort_by_x(series);
    add_figure(section, subject.title,
               {.mark = Mark::kLines,
                .x = {.title = "tokens per block", .log = true},
                .y = {.title = "accuracy", .log = false},
                .series = std::move(series)},
               shown);
  }
  return section;
}

Section bulk_section(const std::vector<Subject>& subjects) {
  Section section = {"bulk-accuracy",
                     "Accuracy, bulk against block-only",
                     "What fits the budget in larger blocks first (bulk), or in blocks of the same "
                     "size from the start.",
                     {}};
  for (const Subject& subject : subjects) {
    const auto pairs = bulk_pairs(subject.settings, [](const EvalSetting& s) {
      return fmt::format("{}, {} tokens{}{}", s.policy, *s.budget,
                         is_default_block(s) ? "" : ", block " + s.block,
                         s.strict ? ", strict" : "");
    });
    add_figure(section, subject.title, bulk_bars(pairs, "accuracy", add_height), records_of(pairs));
  }
  return section;
}

Section needle_section(const std::vector<Subject>& subjects) {
  Section section = {
      "needle",
      "Kept needles and accuracy",
      "The share of layers and heads that still held one of the needle's tokens when "
      "decoding began, and what the answers came to. One point per setting.",
      {}};
  for (const Subject& subject : subjects) {
    const Settings shown =
        only(subject.settings, [](const EvalSetting& s) { return s.n_needle > 0 && !s.resize; });
    std::vector<Series> series;
    std::vector<double> kept;
    std::vector<double> accuracy;
    for (const EvalSetting* s : shown) {
      kept.push_back(s->any_share);
      accuracy.push_back(s->accuracy);
      add_accuracy(series_of(series, is_full(*s) ? "full cache" : s->policy,
                             is_full(*s) ? Role::kFullCache : Role::kOther),
                   s->any_share, *s);
    }
    if (shown.size() < 2) series.clear();
    const std::optional<double> r = correlation(kept, accuracy);
    add_figure(section, subject.title,
               {.mark = Mark::kPoints,
                .x = {.title = "kept-needle rate", .log = false},
                .y = {.title = "accuracy", .log = false},
                .series = std::move(series)},
               shown,
               r ? fmt::format("Pearson's r over {} settings: {:.3f}.", shown.size(), *r) : "");
  }
  return section;
}

}  // namespace

std::optional<double> correlation(const std::vector<double>& x, const std::vector<double>& y) {
  // Two points are always on a line.
  return x.size() < 3 ? std::nullopt : pearson(x, y);
}

std::vector<Section> eval_sections(const Records& records) {
  const std::vector<Subject> subjects = subjects_of(records);
  std::vector<Section> sections = {accuracy_section(subjects), resolution_section(subjects),
                                   needle_section(subjects), block_section(subjects),
                                   bulk_section(subjects)};
  std::erase_if(sections, [](const Section& s) { return s.figures.empty(); });
  return sections;
}

std::vector<KeyFigure> eval_key_figures(const Records& records) {
  const EvalSetting* full = nullptr;
  const EvalSetting* best = nullptr;
  for (const EvalSetting& s : records.eval) {
    if (s.n > 0 && is_full(s) && full == nullptr) full = &s;
  }
  if (full == nullptr) return {};
  for (const EvalSetting& s : records.eval) {
    if (s.n == 0 || !s.budget || s.set != full->set) continue;
    // The smallest budget, and there the most accurate policy.
    if (best == nullptr ||
        std::pair(*s.budget, -s.accuracy) < std::pair(*best->budget, -best->accuracy)) {
      best = &s;
    }
  }
  if (best == nullptr) return {};
  return {
      {fmt::format("{:.1f}\u00a0%", 100 * best->accuracy),
       fmt::format("accuracy with {} tokens kept of {:.0f} ({}); {:.1f}\u00a0% with the full cache",
                   *best->budget, full->visual_tokens, best->policy, 100 * full->accuracy)}};
}

}  // namespace plateau::report

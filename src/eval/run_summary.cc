#include "eval/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace plateau::eval {
namespace {

using Json = nlohmann::ordered_json;
using Records = std::vector<const ResultRecord*>;

std::vector<double> values_of(const Records& records, double (*value)(const ResultRecord&)) {
  std::vector<double> values;
  for (const ResultRecord* record : records) values.push_back(value(*record));
  return values;
}

double mean_of(const Records& records, double (*value)(const ResultRecord&)) {
  return mean_with_error(values_of(records, value)).mean;
}

double score_of(const ResultRecord& record) { return record.score; }

void add_to(std::vector<double>& sums, const std::vector<double>& values) {
  sums.resize(std::max(sums.size(), values.size()));
  for (size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
}

std::optional<NeedleSummary> needle_summary(const Records& records) {
  NeedleSummary summary;
  for (const ResultRecord* record : records) {
    if (!record->needle) continue;
    ++summary.n;
    summary.any_share += record->needle->any();
    summary.token_share += record->needle->token();
    add_to(summary.any_share_by_layer, record->needle->any_share);
    add_to(summary.token_share_by_layer, record->needle->token_share);
  }
  if (summary.n == 0) return {};
  const auto n = static_cast<double>(summary.n);
  summary.any_share /= n;
  summary.token_share /= n;
  for (double& share : summary.any_share_by_layer) share /= n;
  for (double& share : summary.token_share_by_layer) share /= n;
  return summary;
}

SettingSummary summary_of(const Setting& setting, const Records& all) {
  SettingSummary summary;
  summary.setting = setting;
  Records answered;
  Records encoded;
  std::map<std::string, Records> by_kind;
  for (const ResultRecord* record : all) {
    if (record->is_error) {
      ++summary.n_errors;
      continue;
    }
    answered.push_back(record);
    if (record->encoded_tiles > 0) encoded.push_back(record);
    if (!record->kind.empty()) by_kind[record->kind].push_back(record);
    summary.n_right += record->right ? 1 : 0;
    summary.kv_bytes = std::max(summary.kv_bytes, record->kv_bytes);
    summary.peak_anon_bytes = std::max(summary.peak_anon_bytes, record->peak_anon_bytes);
    summary.total_ms += record->total_ms;
  }
  summary.n = static_cast<int64_t>(answered.size());
  summary.accuracy = mean_with_error(values_of(answered, score_of));
  for (const auto& [kind, records] : by_kind) {
    summary.by_kind[kind] = {.n = static_cast<int64_t>(records.size()),
                             .accuracy = mean_with_error(values_of(records, score_of))};
  }
  summary.needle = needle_summary(answered);
  summary.visual_tokens =
      mean_of(answered, [](const ResultRecord& r) { return static_cast<double>(r.visual_tokens); });
  summary.blocks =
      mean_of(answered, [](const ResultRecord& r) { return static_cast<double>(r.blocks); });
  summary.kept_tokens =
      mean_of(answered, [](const ResultRecord& r) { return static_cast<double>(r.kept_tokens); });
  summary.encode_ms = median(values_of(encoded, [](const ResultRecord& r) { return r.encode_ms; }));
  summary.prefill_ms =
      median(values_of(answered, [](const ResultRecord& r) { return r.prefill_ms; }));
  summary.ttft_ms = median(values_of(encoded, [](const ResultRecord& r) { return r.ttft_ms; }));
  return summary;
}

PairedDifference compare(const Setting& reference, const Records& theirs, const Records& ours) {
  std::map<std::string, const ResultRecord*> by_id;
  for (const ResultRecord* record : theirs) {
    if (!record->is_error) by_id[record->id] = record;
  }
  PairedDifference paired;
  paired.reference = reference.name();
  std::vector<double> differences;
  for (const ResultRecord* record : ours) {
    const auto found = by_id.find(record->id);
    if (record->is_error || found == by_id.end()) continue;
    ++paired.n_pairs;
    paired.n_only_reference += found->second->right && !record->right ? 1 : 0;
    paired.n_only_this += record->right && !found->second->right ? 1 : 0;
    differences.push_back(record->score - found->second->score);
  }
  paired.difference = mean_with_error(differences);
  paired.mcnemar_p = mcnemar_exact_p(paired.n_only_reference, paired.n_only_this);
  return paired;
}

/// For a setting that evicts or shrinks, the full cache with the same blocks, or else the first
/// one; for a full cache, the first one.
const Setting* reference_of(const Setting& setting, const std::vector<Setting>& settings) {
  const Setting* first = nullptr;
  for (const Setting& candidate : settings) {
    if (!candidate.is_reference()) continue;
    const bool same_blocks =
        candidate.block == setting.block && candidate.block_unit == setting.block_unit;
    if (same_blocks && !setting.is_reference()) return &candidate;
    if (first == nullptr) first = &candidate;
  }
  return first;
}

std::vector<Correlation> correlations_of(const std::vector<SettingSummary>& settings) {
  std::vector<double> any;
  std::vector<double> token;
  std::vector<double> accuracy;
  for (const SettingSummary& summary : settings) {
    // At a lower resolution the needle may be there and be no more than a smudge.
    if (!summary.needle || summary.setting.resize > 0) continue;
    any.push_back(summary.needle->any_share);
    token.push_back(summary.needle->token_share);
    accuracy.push_back(summary.accuracy.mean);
  }
  const auto n = static_cast<int64_t>(accuracy.size());
  if (n < 3) return {};
  return {{"needle.any_share", n, pearson(any, accuracy), spearman(any, accuracy)},
          {"needle.token_share", n, pearson(token, accuracy), spearman(token, accuracy)}};
}

Json optional_number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json to_json(const SettingSummary& summary) {
  Json json = {{"type", "summary"}};
  write_setting(summary.setting, json);
  json["n"] = summary.n;
  json["errors"] = summary.n_errors;
  json["right"] = summary.n_right;
  json["accuracy"] = summary.accuracy.mean;
  json["standard_error"] = summary.accuracy.standard_error;
  json["paired"] = nullptr;
  if (const auto& paired = summary.paired) {
    json["paired"] = {{"reference", paired->reference},
                      {"n", paired->n_pairs},
                      {"only_reference_right", paired->n_only_reference},
                      {"only_this_right", paired->n_only_this},
                      {"difference", paired->difference.mean},
                      {"standard_error", paired->difference.standard_error},
                      {"mcnemar_p", paired->mcnemar_p}};
  }
  json["needle"] = nullptr;
  if (const auto& needle = summary.needle) {
    json["needle"] = {{"n", needle->n},
                      {"any_share", needle->any_share},
                      {"token_share", needle->token_share},
                      {"any_share_by_layer", needle->any_share_by_layer},
                      {"token_share_by_layer", needle->token_share_by_layer}};
  }
  json["visual_tokens"] = summary.visual_tokens;
  json["blocks"] = summary.blocks;
  json["kept_tokens"] = summary.kept_tokens;
  json["kv_bytes"] = summary.kv_bytes;
  json["peak_anon_bytes"] = summary.peak_anon_bytes;
  json["encode_ms"] = summary.encode_ms;
  json["prefill_ms"] = summary.prefill_ms;
  json["ttft_ms"] = summary.ttft_ms;
  json["total_ms"] = summary.total_ms;
  Json kinds = Json::object();
  for (const auto& [kind, part] : summary.by_kind) {
    kinds[kind] = {{"n", part.n},
                   {"accuracy", part.accuracy.mean},
                   {"standard_error", part.accuracy.standard_error}};
  }
  json["by_kind"] = kinds;
  return json;
}

}  // namespace

RunSummary summarize(const std::vector<ResultRecord>& records) {
  std::vector<Setting> settings;
  std::map<std::string, Records> by_setting;
  for (const ResultRecord& record : records) {
    Records& same = by_setting[record.setting.name()];
    if (same.empty()) settings.push_back(record.setting);
    same.push_back(&record);
  }
  std::stable_partition(settings.begin(), settings.end(),
                        [](const Setting& setting) { return setting.is_reference(); });
  RunSummary result;
  for (const Setting& setting : settings) {
    const Records& ours = by_setting.at(setting.name());
    SettingSummary& summary = result.settings.emplace_back(summary_of(setting, ours));
    const Setting* reference = reference_of(setting, settings);
    if (reference != nullptr && !(*reference == setting)) {
      summary.paired = compare(*reference, by_setting.at(reference->name()), ours);
    }
  }
  result.correlations = correlations_of(result.settings);
  return result;
}

std::vector<Json> to_json(const RunSummary& summary) {
  std::vector<Json> lines;
  for (const SettingSummary& setting : summary.settings) lines.push_back(to_json(setting));
  for (const Correlation& correlation : summary.correlations) {
    lines.push_back({{"type", "correlation"},
                     {"x", correlation.x},
                     {"y", "accuracy"},
                     {"n_settings", correlation.n_settings},
                     {"pearson", optional_number(correlation.pearson)},
                     {"spearman", optional_number(correlation.spearman)}});
  }
  return lines;
}

std::string to_table(const RunSummary& summary) {
  size_t width = 7;
  for (const SettingSummary& setting : summary.settings) {
    width = std::max(width, setting.setting.name().size());
  }
  std::string table = fmt::format(
      "{:<{}}  {:>5}  {:>15}  {:>16}  {:>7}  {:>13}  {:>9}  {:>8}  {:>9}\n", "setting", width, "n",
      "accuracy", "against full", "p", "needle kept", "KV MiB", "peak MiB", "prefill s");
  for (const SettingSummary& s : summary.settings) {
    const std::string accuracy =
        s.n == 0 ? "-"
                 : fmt::format("{:.3f} +- {:.3f}", s.accuracy.mean, s.accuracy.standard_error);
    std::string difference = "-";
    std::string p = "-";
    if (s.paired && s.paired->n_pairs > 0) {
      difference = fmt::format("{:+.3f} +- {:.3f}", s.paired->difference.mean,
                               s.paired->difference.standard_error);
      p = fmt::format("{:.3g}", s.paired->mcnemar_p);
    }
    const std::string needle =
        s.needle ? fmt::format("{:.3f} / {:.3f}", s.needle->any_share, s.needle->token_share) : "-";
    table += fmt::format(
        "{:<{}}  {:>5}  {:>15}  {:>16}  {:>7}  {:>13}  {:>9.1f}  {:>8.1f}  {:>9.2f}{}\n",
        s.setting.name(), width, s.n, accuracy, difference, p, needle,
        static_cast<double>(s.kv_bytes) / (1 << 20),
        static_cast<double>(s.peak_anon_bytes) / (1 << 20), s.prefill_ms / 1000,
        s.n_errors > 0 ? fmt::format("  errors: {}", s.n_errors) : "");
  }
  const bool sees_all = std::any_of(
      summary.settings.begin(), summary.settings.end(),
      [](const SettingSummary& s) { return s.setting.budget > 0 && s.n > 0 && s.blocks <= 1; });
  if (sees_all) {
    table +=
        "Prompts of one block: their first answer token has seen everything, whatever the budget; "
        "try a smaller --block.\n";
  }
  for (const Correlation& correlation : summary.correlations) {
    if (!correlation.pearson || !correlation.spearman) continue;
    table += fmt::format("{} and accuracy over {} settings: Pearson {:.3f}, Spearman {:.3f}\n",
                         correlation.x, correlation.n_settings, *correlation.pearson,
                         *correlation.spearman);
  }
  return table;
}

}  // namespace plateau::eval

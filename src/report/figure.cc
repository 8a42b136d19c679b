#include "report/figure.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace plateau::report {
namespace {

using nlohmann::ordered_json;

const char* to_string(Mark mark) {
  switch (mark) {
    case Mark::kLines:
      return "lines";
    case Mark::kPoints:
      return "points";
    case Mark::kBars:
      return "bars";
    case Mark::kStackedBars:
      return "stacked";
  }
  return "lines";
}

const char* to_string(Role role) {
  switch (role) {
    case Role::kOther:
      return "other";
    case Role::kFullCache:
      return "full";
    case Role::kLlamaCpp:
      return "llama";
  }
  return "other";
}

ordered_json to_json(const Axis& axis) { return {{"title", axis.title}, {"log", axis.log}}; }

}  // namespace

Series& series_of(std::vector<Series>& all, const std::string& name, Role role) {
  for (Series& series : all) {
    if (series.name == name) return series;
  }
  Series& fresh = all.emplace_back();
  fresh.name = name;
  fresh.role = role;
  return fresh;
}

std::string plot_json(const Plot& plot) {
  ordered_json series = ordered_json::array();
  for (const Series& s : plot.series) {
    series.push_back({{"name", s.name},
                      {"role", to_string(s.role)},
                      {"x", s.x},
                      {"labels", s.labels},
                      {"y", s.y},
                      {"low", s.low},
                      {"high", s.high}});
  }
  const ordered_json json = {{"mark", to_string(plot.mark)},
                             {"x", to_json(plot.x)},
                             {"y", to_json(plot.y)},
                             {"series", series}};
  return json.dump(-1, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace);
}

std::string format_number(double value) {
  const double size = std::fabs(value);
  if (size >= 100 || value == std::floor(value)) return fmt::format("{:.0f}", value);
  if (size >= 10) return fmt::format("{:.1f}", value);
  return size >= 0.1 ? fmt::format("{:.2f}", value) : fmt::format("{:.3g}", value);
}

std::string format_spread(double median, double min, double max) {
  if (min == max) return format_number(median);
  return fmt::format("{} ({}\u2013{})", format_number(median), format_number(min),
                     format_number(max));
}

}  // namespace plateau::report

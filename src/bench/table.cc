#include "bench/table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace plateau::bench {
namespace {

using nlohmann::json;

constexpr double kMiB = 1 << 20;

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// "12.30 +-0.40": the median and half the spread.
std::string seconds(const json& spread) {
  const double half = (spread["max"].get<double>() - spread["min"].get<double>()) / 2;
  return fmt::format("{:.2f} +-{:.2f}", spread["median"].get<double>() / 1000, half / 1000);
}

std::string rate(const json& spread) {
  return spread.is_null() ? "-" : fmt::format("{:.1f}", spread["median"].get<double>());
}

std::string ratio(const json& spread) {
  if (spread.is_null()) return "-";
  return fmt::format("{:.2f} ({:.2f}-{:.2f})", spread["median"].get<double>(),
                     spread["min"].get<double>(), spread["max"].get<double>());
}

std::string mib(const json& n_bytes) { return fmt::format("{:.1f}", n_bytes.get<double>() / kMiB); }

std::string point_columns(const json& r) {
  const std::string input = r.contains("n_input") ? text_of(r["n_input"]) : text_of(r["image"]);
  const std::string visual = r.contains("visual_tokens") ? text_of(r["visual_tokens"]) : input;
  return fmt::format("{:>8} {:>7} {:<15} {:>6} {:>2}", visual, text_of(r["kv_budget"]),
                     text_of(r["policy"]), text_of(r["block"]), text_of(r["threads"]));
}

}  // namespace

std::string table_heading(bool against) {
  std::string line = fmt::format("{:>8} {:>7} {:<15} {:>6} {:>2} {:>15} {:>8} {:>8} {:>9} {:>9}",
                                 "visual", "budget", "policy", "block", "t", "TTFT s", "tok/s",
                                 "decode/s", "KV MiB", "peak MiB");
  if (against) line += fmt::format(" {:>18} {:>18}", "TTFT vs llama.cpp", "decode");
  return line;
}

std::string table_row(const std::string& line, bool against) {
  const json r = json::parse(line);
  if (r.contains("error")) {
    return fmt::format("{} {}", point_columns(r), r["error"].get<std::string>());
  }
  std::string row =
      fmt::format("{} {:>15} {:>8.1f} {:>8} {:>9} {:>9}", point_columns(r), seconds(r["ttft_ms"]),
                  r["prompt_tok_s"].get<double>(), rate(r["decode_tok_s"]), mib(r["kv_bytes"]),
                  mib(r["peak_anon_bytes"]));
  if (against) {
    row +=
        fmt::format(" {:>18} {:>18}", ratio(r["speedup"]["ttft"]), ratio(r["speedup"]["decode"]));
  }
  return row;
}

}  // namespace plateau::bench

#include "base/byte_size.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace plateau {
namespace {

constexpr double kMaxBytes = 9e18;  // below INT64_MAX

/// 0: no such unit.
double unit_factor(std::string unit) {
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (unit.empty() || unit == "b") return 1;
  constexpr std::string_view kPrefixes = "kmgt";
  const size_t power = kPrefixes.find(unit.front());
  if (power == std::string_view::npos) return 0;
  const std::string rest = unit.substr(1);
  if (rest.empty() || rest == "ib") return std::pow(1024.0, static_cast<double>(power + 1));
  return rest == "b" ? std::pow(1000.0, static_cast<double>(power + 1)) : 0;
}

}  // namespace

int64_t parse_byte_size(const std::string& text, const std::string& option) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  std::string unit = error == std::errc() ? std::string(stop, end) : "?";
  unit.erase(0, std::min(unit.find_first_not_of(' '), unit.size()));
  const double bytes = number * unit_factor(unit);
  if (!(bytes >= 1 && bytes <= kMaxBytes)) {
    throw_error(ErrorCode::kInvalidArgument,
                "[{}] expected a size such as 6GiB, 512MiB or a number of bytes, got {}", option,
                text);
  }
  return static_cast<int64_t>(bytes);
}

std::string format_byte_size(int64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 1, kUnits[unit]);
}

}  // namespace plateau

#include "report/records.h"

#include <charconv>

namespace plateau::report {

std::optional<double> block_number(const std::string& block) {
  int value = 0;
  const char* end = block.data() + block.size();
  const auto [stop, error] = std::from_chars(block.data(), end, value);
  if (error != std::errc() || stop != end || value == 0) return std::nullopt;
  return value;
}

}  // namespace plateau::report

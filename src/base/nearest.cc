#include "base/nearest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace plateau {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const auto nearest = std::min_element(candidates.begin(), candidates.end(),
                                        [&](const std::string& a, const std::string& b) {
                                          return edit_distance(name, a) < edit_distance(name, b);
                                        });
  if (nearest == candidates.end() || 2 * edit_distance(name, *nearest) > name.size()) return "";
  return "; did you mean " + *nearest + "?";
}

}  // namespace plateau

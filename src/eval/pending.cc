#include "eval/pending.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace plateau::eval {
namespace {

bool same_media(const SetQuestion& a, const SetQuestion& b) {
  return std::equal(a.media.begin(), a.media.end(), b.media.begin(), b.media.end(),
                    [](const auto& x, const auto& y) { return x.path == y.path; });
}

}  // namespace

std::vector<PendingGroup> pending_groups(const std::vector<SetQuestion>& questions,
                                         const std::vector<Setting>& settings,
                                         const std::vector<ResultRecord>& done) {
  std::set<std::pair<std::string, std::string>> finished;
  for (const ResultRecord& record : done) {
    if (!record.is_error) finished.emplace(record.id, record.setting.name());
  }
  std::vector<PendingGroup> groups;
  for (size_t i = 0; i < questions.size(); ++i) {
    PendingQuestion pending = {.question = i, .settings = {}};
    for (const Setting& setting : settings) {
      if (!finished.contains({questions[i].id, setting.name()})) {
        pending.settings.push_back(setting);
      }
    }
    if (pending.settings.empty()) continue;
    if (groups.empty() || !same_media(questions[groups.back().back().question], questions[i])) {
      groups.emplace_back();
    }
    groups.back().push_back(std::move(pending));
  }
  return groups;
}

size_t count_pairs(const std::vector<PendingGroup>& groups) {
  size_t n = 0;
  for (const PendingGroup& group : groups) {
    for (const PendingQuestion& pending : group) n += pending.settings.size();
  }
  return n;
}

}  // namespace plateau::eval

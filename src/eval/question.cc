// Tested by question_test.cc.
#include "eval/question.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "base/check.h"
#include "eval/assets.h"
#include "eval/description.h"

namespace plateau::eval {
namespace {

struct NamedKind {
  QuestionKind kind;
  const char* name;
};
constexpr std::array<NamedKind, 8> kNames = {{{QuestionKind::kNumber, "number"},
                                              {QuestionKind::kWhich, "which"},
                                              {QuestionKind::kCount, "count"},
                                              {QuestionKind::kExists, "exists"},
                                              {QuestionKind::kWhere, "where"},
                                              {QuestionKind::kWhen, "when"},
                                              {QuestionKind::kSecond, "second"},
                                              {QuestionKind::kFirst, "first"}}};
constexpr std::array<const char*, 3> kThirds = {"beginning", "middle", "end"};
constexpr int kMostCounted = 4;
constexpr int kTries = 20;

const nlohmann::json& wordings() {
  static const nlohmann::json json = nlohmann::json::parse(question_wordings_json());
  return json;
}

std::string replaced(std::string text, const std::string& slot, const std::string& value) {
  const size_t at = text.find(slot);
  if (at != std::string::npos) text.replace(at, slot.size(), value);
  return text;
}

std::vector<std::string> digits_up_to(int last) {
  std::vector<std::string> digits;
  for (int digit = 0; digit <= last; ++digit) digits.push_back(std::to_string(digit));
  return digits;
}

std::string slug(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '-');
  return text;
}

bool is_colored(const Scene& scene) { return !scene.drawings.front().color.empty(); }

/// "cat" and, where colours tell objects apart, "red cat", for every kind and colour.
std::vector<Description> all_names(const Scene& scene) {
  std::vector<Description> names;
  for (const ObjectKind& kind : object_kinds()) {
    names.push_back({"", "", kind.name});
    if (!is_colored(scene)) continue;
    for (const NamedColor& color : object_colors()) {
      names.push_back({"", color.name, kind.name});
    }
  }
  return names;
}

class Asker {
 public:
  Asker(const Scene& scene, int n_wordings, Rng rng)
      : scene_(scene), n_wordings_(n_wordings), rng_(rng) {}

  /// `turn` counts the questions of the kind; none when this try finds nothing to ask.
  std::optional<Question> ask(QuestionKind kind, int turn) {
    switch (kind) {
      case QuestionKind::kNumber:
        return number(turn % scene_.n_objects);
      case QuestionKind::kWhich:
        return which(pick_object());
      case QuestionKind::kCount:
        return count(rng_.range(0, kMostCounted + 1));
      case QuestionKind::kExists:
        return rng_.coin() ? exists() : exists_not();
      case QuestionKind::kWhere:
        return where(pick_object());
      case QuestionKind::kWhen:
        return when(turn % scene_.n_objects);
      case QuestionKind::kSecond:
        return second(turn % scene_.n_objects);
      case QuestionKind::kFirst:
        return first(pick_object(), pick_object());
    }
    return std::nullopt;
  }

 private:
  int pick_object() { return rng_.range(0, scene_.n_objects); }

  std::string wording(const char* kind) {
    return wordings().at(kind).at(rng_.below(static_cast<uint64_t>(n_wordings_)));
  }

  /// One of the names that fit this drawing and no other.
  std::optional<Description> unique_name(int target) {
    std::vector<Description> names = descriptions_of(scene_.drawings[target]);
    std::erase_if(names,
                  [&](const Description& name) { return matches(scene_, name).size() != 1; });
    if (names.empty()) return std::nullopt;
    return names[rng_.below(names.size())];
  }

  std::optional<Question> number(int target) {
    const auto name = unique_name(target);
    if (!name) return std::nullopt;
    return Question{QuestionKind::kNumber,
                    is_colored(scene_) ? "number-" + slug(name->text()) : name->text(),
                    replaced(wording("number"), "{object}", name->text()),
                    std::to_string(scene_.drawings[target].digit),
                    digits_up_to(9),
                    {target}};
  }

  std::optional<Question> which(int target) {
    const Drawing& drawing = scene_.drawings[target];
    for (int i = 0; i < scene_.n_objects; ++i) {
      if (i != target && scene_.drawings[i].digit == drawing.digit) return std::nullopt;
    }
    const std::string digit = std::to_string(drawing.digit);
    return Question{QuestionKind::kWhich,
                    "which-" + digit,
                    replaced(wording("which"), "{number}", digit),
                    Description{"", drawing.color, drawing.object}.text(),
                    {},
                    {target}};
  }

  std::optional<Question> count(int wanted) {
    std::vector<Description> names = all_names(scene_);
    std::erase_if(names, [&](const Description& name) {
      return matches(scene_, name).size() != static_cast<size_t>(wanted);
    });
    if (names.empty()) return std::nullopt;
    const Description& name = names[rng_.below(names.size())];
    return Question{
        QuestionKind::kCount,
        "count-" + slug(name.text()),
        replaced(wording(scene_.is_film() ? "count_in_film" : "count"), "{objects}", name.plural()),
        std::to_string(wanted),
        digits_up_to(kMostCounted),
        matches(scene_, name)};
  }

  Question existence(const Description& name) {
    const std::vector<int> found = matches(scene_, name);
    return Question{QuestionKind::kExists,
                    "exists-" + slug(name.text()),
                    replaced(wording(scene_.is_film() ? "exists_in_film" : "exists"), "{an object}",
                             name.with_article()),
                    found.empty() ? "no" : "yes",
                    {"yes", "no"},
                    found};
  }

  std::optional<Question> exists() {
    const auto names = descriptions_of(scene_.drawings[pick_object()]);
    return existence(names[rng_.below(names.size())]);
  }

  /// What is not there but nearly: an object's kind or colour changed.
  std::optional<Question> exists_not() {
    const auto names = descriptions_of(scene_.drawings[pick_object()]);
    Description name = names[rng_.below(names.size())];
    if (name.color_name.empty() || rng_.coin()) {
      name.object = object_kinds()[rng_.below(object_kinds().size())].name;
    } else {
      name.color_name = object_colors()[rng_.below(object_colors().size())].name;
    }
    if (!matches(scene_, name).empty()) return std::nullopt;
    return existence(name);
  }

  std::optional<Question> where(int target) {
    const auto name = unique_name(target);
    if (!name) return std::nullopt;
    const Drawing& box = scene_.drawings[target];
    const bool sideways = rng_.coin();
    const int64_t first = sideways ? box.x : box.y;
    const int64_t last = first + (sideways ? box.w : box.h);
    const int64_t side = sideways ? scene_.width : scene_.height;
    if (2 * first < side && 2 * last > side) return std::nullopt;  // on the border
    const std::vector<std::string> halves = sideways ? std::vector<std::string>{"left", "right"}
                                                     : std::vector<std::string>{"top", "bottom"};
    const char* kind = sideways ? "left_or_right" : "top_or_bottom";
    return Question{QuestionKind::kWhere,
                    "where-" + slug(name->text()) + (sideways ? "-x" : "-y"),
                    replaced(wording(kind), "{object}", name->text()),
                    halves[2 * first < side ? 0 : 1],
                    halves,
                    {target}};
  }

  std::optional<Question> when(int target) {
    const auto name = unique_name(target);
    if (!name) return std::nullopt;
    const Drawing& drawing = scene_.drawings[target];
    const double third = scene_.seconds / static_cast<double>(kThirds.size());
    const auto part = static_cast<size_t>(drawing.start_s / third);
    if (part >= kThirds.size() || drawing.end_s > third * static_cast<double>(part + 1)) {
      return std::nullopt;  // on the border
    }
    return Question{QuestionKind::kWhen,
                    "when-" + slug(name->text()),
                    replaced(wording("when"), "{object}", name->text()),
                    kThirds[part],
                    {kThirds.begin(), kThirds.end()},
                    {target}};
  }

  std::optional<Question> second(int target) {
    const auto name = unique_name(target);
    if (!name) return std::nullopt;
    return Question{QuestionKind::kSecond,
                    "second-" + slug(name->text()),
                    replaced(wording("second"), "{object}", name->text()),
                    std::to_string(static_cast<int64_t>(scene_.drawings[target].start_s)),
                    {},
                    {target}};
  }

  std::optional<Question> first(int one, int other) {
    if (one == other) return std::nullopt;
    const auto name = unique_name(one);
    const auto other_name = unique_name(other);
    if (!name || !other_name) return std::nullopt;
    const bool one_is_first = scene_.drawings[one].start_s < scene_.drawings[other].start_s;
    return Question{QuestionKind::kFirst,
                    "first-" + slug(name->text()) + "-" + slug(other_name->text()),
                    replaced(replaced(wording("first"), "{object}", name->text()), "{other}",
                             other_name->text()),
                    one_is_first ? name->text() : other_name->text(),
                    {name->text(), other_name->text()},
                    {one, other}};
  }

  const Scene& scene_;
  int n_wordings_;
  Rng rng_;
};

}  // namespace

const char* question_kind_name(QuestionKind kind) {
  for (const NamedKind& named : kNames) {
    if (named.kind == kind) return named.name;
  }
  throw_error(ErrorCode::kInternal, "[needle] no such kind of question");
}

const char* question_supply(QuestionKind kind) {
  switch (kind) {
    case QuestionKind::kNumber:
    case QuestionKind::kSecond:
      return "one per object with a name of its own";
    case QuestionKind::kWhich:
      return "one per object whose digit no other carries";
    case QuestionKind::kCount:
      return "one per name that fits at most 4 objects";
    case QuestionKind::kExists:
      return "one per name";
    case QuestionKind::kWhere:
      return "at most two per object, none across the middle";
    case QuestionKind::kWhen:
      return "one per object that is there within one third of the film";
    case QuestionKind::kFirst:
      return "two per pair of objects";
  }
  throw_error(ErrorCode::kInternal, "[needle] no such kind of question");
}

bool is_about_time(QuestionKind kind) {
  return kind == QuestionKind::kWhen || kind == QuestionKind::kSecond ||
         kind == QuestionKind::kFirst;
}

std::vector<QuestionKind> parse_question_kinds(const std::string& names) {
  std::vector<QuestionKind> kinds;
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    const auto* named = std::find_if(kNames.begin(), kNames.end(),
                                     [&](const NamedKind& known) { return name == known.name; });
    if (named == kNames.end()) {
      throw_error(ErrorCode::kInvalidArgument,
                  "[needle] expected kinds of question among number, which, count, exists and "
                  "where, of films when, second and first, too, got '{}'",
                  name);
    }
    kinds.push_back(named->kind);
  }
  if (kinds.empty()) {
    throw_error(ErrorCode::kInvalidArgument, "[needle] expected a kind of question, got none");
  }
  return kinds;
}

int n_question_wordings() {
  size_t fewest = 99;
  for (const auto& ways : wordings()) fewest = std::min(fewest, ways.size());
  return static_cast<int>(fewest);
}

std::vector<Question> ask_about(const Scene& scene, std::span<const QuestionKind> kinds,
                                int n_questions, int n_wordings, Rng rng) {
  PLATEAU_CHECK(!kinds.empty() && n_wordings >= 1 && n_wordings <= n_question_wordings());
  PLATEAU_CHECK(scene.is_film() || std::none_of(kinds.begin(), kinds.end(), is_about_time));
  Asker asker(scene, n_wordings, rng);
  std::vector<Question> questions;
  std::set<std::string> ids;
  std::vector<int> turns(kinds.size(), 0);
  for (int i = 0; i < n_questions; ++i) {
    const size_t which = static_cast<size_t>(i) % kinds.size();
    for (int attempt = 0; attempt < kTries + scene.n_objects; ++attempt) {
      auto question = asker.ask(kinds[which], turns[which]++);
      if (!question || !ids.insert(question->id).second) continue;
      questions.push_back(std::move(*question));
      break;
    }
  }
  return questions;
}

}  // namespace plateau::eval

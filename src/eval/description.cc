// Tested by question_test.cc.
#include "eval/description.h"

#include "base/check.h"
#include "eval/placement.h"

namespace plateau::eval {
namespace {

std::string joined(const Description& description, std::string_view noun) {
  std::string text;
  for (const std::string_view word : {description.size_name, description.color_name, noun}) {
    if (word.empty()) continue;
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

std::string_view plural_of(std::string_view object) {
  for (const ObjectKind& kind : object_kinds()) {
    if (kind.name == object) return kind.plural;
  }
  throw_error(ErrorCode::kInternal, "[needle] no object '{}'", object);
}

}  // namespace

std::string Description::text() const { return joined(*this, object); }

std::string Description::plural() const { return joined(*this, plural_of(object)); }

std::string Description::with_article() const {
  const std::string name = text();
  const bool vowel = std::string_view("aeiou").find(name.front()) != std::string_view::npos;
  return (vowel ? "an " : "a ") + name;
}

bool Description::fits(const Drawing& drawing) const {
  return drawing.object == object && (color_name.empty() || drawing.color == color_name) &&
         (size_name.empty() || drawing.size == size_name);
}

std::vector<Description> descriptions_of(const Drawing& drawing) {
  std::vector<Description> names = {{"", "", drawing.object}};
  if (!drawing.color.empty()) names.push_back({"", drawing.color, drawing.object});
  if (!drawing.size.empty()) names.push_back({drawing.size, drawing.color, drawing.object});
  return names;
}

std::vector<int> matches(const Scene& scene, const Description& description) {
  std::vector<int> found;
  for (size_t i = 0; i < scene.drawings.size(); ++i) {
    if (description.fits(scene.drawings[i])) found.push_back(static_cast<int>(i));
  }
  return found;
}

}  // namespace plateau::eval

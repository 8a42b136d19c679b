// How an object is named in a question, and which objects a name fits. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "eval/scene.h"

namespace plateau::eval {

/// "cat", "red cat", "small red cat": empty words say nothing.
struct Description {
  std::string_view size_name;
  std::string_view color_name;
  std::string_view object;

  std::string text() const;          // "small red cat"
  std::string plural() const;        // "small red cats"
  std::string with_article() const;  // "an orange cat"
  bool fits(const Drawing& drawing) const;
};

/// Every way to name the object, from the shortest on.
std::vector<Description> descriptions_of(const Drawing& drawing);

/// Indices into `scene.drawings` of what the name fits.
std::vector<int> matches(const Scene& scene, const Description& description);

}  // namespace plateau::eval

// The drawings and wordings of models/pico/assets, compiled into the library so that the program
// needs no path.
#pragma once

#include <span>
#include <string_view>

namespace plateau::eval {

struct Asset {
  std::string_view name;  // "cat", "digits/7", "letters/q"
  std::string_view svg;   // the whole file
};

/// All drawings, sorted by name.
std::span<const Asset> assets();

/// The marks inside the <svg> element, without the element itself: they inherit color, fill, stroke
/// and stroke-width from whatever they are put into, and so can be recoloured.
/// REQUIRES: the name exists.
std::string_view asset_body(std::string_view name);

/// questions.json: the wordings of every kind of question, as JSON. Training reads the same file.
std::string_view question_wordings_json();

}  // namespace plateau::eval

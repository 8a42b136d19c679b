// Scenes and questions as lines of JSON.
#pragma once

#include <string>

#include "eval/question.h"
#include "eval/scene.h"

namespace plateau::eval {

/// A line of set.jsonl, without its line break; `number` is the picture's, as in "0007".
std::string question_line(const Scene& scene, const Question& question, const std::string& image,
                          const std::string& number);

/// A line of scenes.jsonl, without its line break; `background` is a file name or empty.
std::string scene_line(const Scene& scene, const std::string& image, const std::string& background);

}  // namespace plateau::eval

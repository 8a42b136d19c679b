// Scenes and questions as lines of JSON.
#pragma once

#include <string>

#include "eval/question.h"
#include "eval/scene.h"

namespace plateau::eval {

/// A line of set.jsonl, without its line break; `file` is the picture's or film's
/// name, `number` its own, as in "0007".
std::string question_line(const Scene& scene, const Question& question, const std::string& file,
                          const std::string& number);

/// A line of scenes.jsonl, without its line break; `background` is a file name or empty.
std::string scene_line(const Scene& scene, const std::string& file, const std::string& background);

}  // namespace plateau::eval

// Tested by needle_set_test.cc.
#include "eval/scene_json.h"

#include <nlohmann/json.hpp>

namespace plateau::eval {
namespace {

using Json = nlohmann::ordered_json;

Json box_of(const Drawing& drawing) {
  return Json{{"x", drawing.x},
              {"y", drawing.y},
              {"w", drawing.w},
              {"h", drawing.h},
              {"cell", {drawing.col, drawing.row}}};
}

Json drawing_of(const Drawing& drawing) {
  Json json = Json::object();
  if (!drawing.object.empty()) json["object"] = drawing.object;
  if (!drawing.color.empty()) json["color"] = drawing.color;
  if (!drawing.size.empty()) json["size"] = drawing.size;
  if (drawing.digit != kNoDigit) json["number"] = drawing.digit;
  if (!drawing.words.empty()) json["words"] = drawing.words;
  json.update(box_of(drawing));
  return json;
}

}  // namespace

std::string question_line(const Scene& scene, const Question& question, const std::string& image,
                          const std::string& number) {
  Json json = {{"id", number + "-" + question.id},
               {"image", image},
               {"kind", question_kind_name(question.kind)},
               {"question", question.text},
               {"answer", question.answer}};
  if (!question.choices.empty()) json["choices"] = question.choices;
  if (question.targets.size() == 1) json["needle"] = box_of(scene.drawings[question.targets[0]]);
  json["needles"] = Json::array();
  for (const int target : question.targets) {
    json["needles"].push_back(box_of(scene.drawings[target]));
  }
  json["grid"] = {scene.n_cols, scene.n_rows};
  json["width"] = scene.width;
  json["height"] = scene.height;
  json["seed"] = scene.seed;
  return json.dump();
}

std::string scene_line(const Scene& scene, const std::string& image,
                       const std::string& background) {
  Json json = {{"image", image},
               {"grid", {scene.n_cols, scene.n_rows}},
               {"width", scene.width},
               {"height", scene.height},
               {"seed", scene.seed}};
  if (!background.empty()) json["background"] = background;
  json["drawings"] = Json::array();
  for (const Drawing& drawing : scene.drawings) json["drawings"].push_back(drawing_of(drawing));
  return json.dump();
}

}  // namespace plateau::eval

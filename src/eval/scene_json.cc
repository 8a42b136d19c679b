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

Json needle_of(const Scene& scene, const Drawing& drawing) {
  Json json = box_of(drawing);
  if (scene.is_film()) {
    json["start_s"] = drawing.start_s;
    json["end_s"] = drawing.end_s;
  }
  return json;
}

const char* medium_field(const Scene& scene) { return scene.is_film() ? "video" : "image"; }

/// What a line says of its picture or film.
void add_scene(const Scene& scene, Json& json) {
  json["grid"] = {scene.n_cols, scene.n_rows};
  json["width"] = scene.width;
  json["height"] = scene.height;
  if (scene.is_film()) {
    json["seconds"] = scene.seconds;
    json["fps"] = scene.fps;
  }
  json["seed"] = scene.seed;
}

Json drawing_of(const Scene& scene, const Drawing& drawing) {
  Json json = Json::object();
  if (!drawing.object.empty()) json["object"] = drawing.object;
  if (!drawing.color.empty()) json["color"] = drawing.color;
  if (!drawing.size.empty()) json["size"] = drawing.size;
  if (drawing.digit != kNoDigit) json["number"] = drawing.digit;
  if (!drawing.words.empty()) json["words"] = drawing.words;
  json.update(needle_of(scene, drawing));
  return json;
}

}  // namespace

std::string question_line(const Scene& scene, const Question& question, const std::string& file,
                          const std::string& number) {
  Json json = {{"id", number + "-" + question.id},
               {medium_field(scene), file},
               {"kind", question_kind_name(question.kind)},
               {"question", question.text},
               {"answer", question.answer}};
  if (!question.choices.empty()) json["choices"] = question.choices;
  if (question.targets.size() == 1) {
    json["needle"] = needle_of(scene, scene.drawings[question.targets[0]]);
  }
  json["needles"] = Json::array();
  for (const int target : question.targets) {
    json["needles"].push_back(needle_of(scene, scene.drawings[target]));
  }
  add_scene(scene, json);
  return json.dump();
}

std::string scene_line(const Scene& scene, const std::string& file, const std::string& background) {
  Json json = {{medium_field(scene), file}};
  add_scene(scene, json);
  if (!background.empty()) json["background"] = background;
  json["drawings"] = Json::array();
  for (const Drawing& drawing : scene.drawings) {
    json["drawings"].push_back(drawing_of(scene, drawing));
  }
  return json.dump();
}

}  // namespace plateau::eval

// V*Bench (arXiv:2312.14135), test_questions.jsonl:
//   {"image", "text": question with "(A) ..." lines and the instruction, "category", "label": "A",
//    "question_id"}
// Beside each picture lies NAME.json with "bbox": [[x, y, w, h], ...] of what is asked about; where
// it is there, it gives the needles.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "eval/readers/readers.h"

namespace plateau::eval {
namespace {

namespace fs = std::filesystem;

void add_needles(const std::string& picture, SetQuestion& question) {
  const fs::path path = fs::path(picture).replace_extension(".json");
  std::error_code ignored;
  std::ifstream file;
  if (fs::is_regular_file(path, ignored)) file.open(path, std::ios::binary);
  if (!file.is_open()) return;
  nlohmann::json json = nlohmann::json::parse(file, /*cb=*/nullptr, /*allow_exceptions=*/false);
  const JsonRecord record(std::move(json), path.string());
  if (!record.has("bbox")) return;
  for (const nlohmann::json& box : record.at("bbox")) {
    const bool is_box = box.is_array() && box.size() == 4 &&
                        std::all_of(box.begin(), box.end(),
                                    [](const nlohmann::json& side) { return side.is_number(); });
    if (!is_box || box[2] <= 0 || box[3] <= 0) {
      record.fail("bbox", "boxes of x, y, width, height", describe(box));
    }
    question.needles.push_back({.media = 0,
                                .x = box[0].get<double>(),
                                .y = box[1].get<double>(),
                                .width = box[2].get<double>(),
                                .height = box[3].get<double>()});
  }
}

}  // namespace

SetQuestion read_vstar(const JsonRecord& record, const RecordContext& context) {
  SetQuestion question;
  const std::string image = record.text({"image"});
  question.kind = record.text_or({"category"}, fs::path(image).parent_path().string());
  question.id = question.kind + "/" +
                record.text_or_number({"question_id"}).value_or(fmt::format("{}", context.index));
  question.media.push_back({media_path(context, image), MediaKind::kImage});
  const std::string text = record.text({"text"});
  set_choices(record, "label", listed_options(text), question);
  question.prompt = {{.media = 0}, {.text = text}};
  add_needles(question.media[0].path, question);
  return question;
}

}  // namespace plateau::eval

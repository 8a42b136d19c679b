// Plateau's own sets (plateau needle, docs/eval.md).
#include <fmt/format.h>

#include "eval/readers/readers.h"

namespace plateau::eval {
namespace {

void add_media(const JsonRecord& record, const RecordContext& context, const char* one,
               const char* many, MediaKind kind, SetQuestion& question) {
  std::vector<std::string> paths;
  if (record.has(many)) {
    paths = record.texts({many});
  } else if (record.has(one)) {
    paths.push_back(record.text({one}));
  }
  for (const std::string& path : paths) {
    question.prompt.push_back({.media = static_cast<int>(question.media.size())});
    question.media.push_back({media_path(context, path), kind});
  }
}

NeedleBox read_box(const JsonRecord& box, const SetQuestion& question) {
  NeedleBox needle = {.media = static_cast<int>(box.whole_number("image").value_or(0)),
                      .x = box.number("x"),
                      .y = box.number("y"),
                      .width = box.number("w"),
                      .height = box.number("h")};
  if (needle.media < 0 || needle.media >= static_cast<int>(question.media.size())) {
    box.fail("image", fmt::format("the index of one of {} pictures", question.media.size()));
  }
  if (needle.width <= 0) box.fail("w", "more than 0 pixels");
  if (needle.height <= 0) box.fail("h", "more than 0 pixels");
  return needle;
}

/// Films have needles in time, which is not read here.
bool has_box(const JsonRecord& needle) { return needle.has("x"); }

void add_needles(const JsonRecord& record, SetQuestion& question) {
  if (!record.has("needles") && record.has("needle")) {
    const JsonRecord needle = record.object("needle");
    if (has_box(needle)) question.needles.push_back(read_box(needle, question));
  }
  for (const JsonRecord& needle : record.objects("needles")) {
    if (has_box(needle)) question.needles.push_back(read_box(needle, question));
  }
}

}  // namespace

SetQuestion read_plateau(const JsonRecord& record, const RecordContext& context) {
  SetQuestion question;
  question.id = record.text_or_number({"id"}).value_or("");
  if (question.id.empty()) record.fail("id", "text");
  question.kind = record.text_or({"kind"}, "");
  add_media(record, context, "image", "images", MediaKind::kImage, question);
  add_media(record, context, "video", "videos", MediaKind::kVideo, question);
  const std::string text = record.text({"question"});
  if (record.has("choices")) {
    set_choices(record, "answer", record.texts({"choices"}), question);
    // Asked as it stands: only a question that lists its options can be answered by letter.
    question.has_letters = listed_options(text).size() == question.choices.size();
  } else if (record.at("answer").is_array()) {
    question.answers = record.texts({"answer"});
    if (question.answers.empty()) record.fail("answer", "at least one text");
  } else if (const auto answer = record.text_or_number({"answer"})) {
    question.answers.push_back(*answer);
  } else {
    record.fail("answer", "text");
  }
  question.prompt.push_back({.text = text});
  add_needles(record, question);
  return question;
}

}  // namespace plateau::eval

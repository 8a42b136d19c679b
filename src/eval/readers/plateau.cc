// Plateau's own sets (plateau needle, docs/eval.md).
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "eval/readers/readers.h"

namespace plateau::eval {
namespace {

constexpr double kEverything = 1e9;  // pixels; more than any frame has

void add_media(const JsonRecord& record, const RecordContext& context, const char* one,
               const char* many, MediaKind kind, SetQuestion& question) {
  std::vector<std::string> paths;
  if (record.has(many)) {
    paths = record.texts({many});
  } else if (record.has(one)) {
    paths.push_back(record.text({one}));
  }
  for (const std::string& path : paths) {
    if (path.empty())
      record.fail(record.has(many) ? many : one, "the path of a file", "an empty text");
    question.prompt.push_back({.media = static_cast<int>(question.media.size())});
    question.media.push_back({media_path(context, path), kind});
  }
}

/// A box, of a film with times; times alone mean whole frames.
NeedleBox read_needle(const JsonRecord& record, const SetQuestion& question) {
  const int64_t medium = record.whole_number("image").value_or(0);
  const auto n_media = static_cast<int64_t>(question.media.size());
  if (medium < 0 || medium >= n_media) {
    record.fail("image", n_media == 1
                             ? "0: there is one picture or film"
                             : fmt::format("the index of one of {} pictures and films", n_media));
  }
  NeedleBox needle = {.media = static_cast<int>(medium)};
  const bool has_times = record.has("start_s") || record.has("end_s");
  if (has_times && question.media[static_cast<size_t>(needle.media)].kind == MediaKind::kImage) {
    record.fail("start_s", "none for a picture");
  }
  if (has_times) {
    needle.start_s = record.number("start_s");
    needle.end_s = record.number("end_s");
    if (needle.start_s < 0) record.fail("start_s", "0 or more seconds");
    if (needle.end_s <= needle.start_s) record.fail("end_s", "more than start_s");
  }
  if (has_times && !record.has("x")) {
    needle.width = needle.height = kEverything;
    return needle;
  }
  needle.x = record.number("x");
  needle.y = record.number("y");
  needle.width = record.number("w");
  needle.height = record.number("h");
  if (needle.width <= 0) record.fail("w", "more than 0 pixels");
  if (needle.height <= 0) record.fail("h", "more than 0 pixels");
  return needle;
}

void add_needles(const JsonRecord& record, SetQuestion& question) {
  if (!record.has("needles") && record.has("needle")) {
    question.needles.push_back(read_needle(record.object("needle"), question));
  }
  for (const JsonRecord& needle : record.objects("needles")) {
    question.needles.push_back(read_needle(needle, question));
  }
}

/// Options that are told apart by nothing but their texts.
void check_texts_differ(const JsonRecord& record, const std::vector<std::string>& choices) {
  std::set<std::string> seen;
  for (const std::string& choice : choices) {
    if (!seen.insert(choice).second) {
      record.fail("choices", "options that differ", fmt::format("'{}' twice", choice));
    }
  }
}

void check_answers(const JsonRecord& record, const std::vector<std::string>& answers) {
  if (answers.empty()) record.fail("answer", "at least one text");
  if (std::find(answers.begin(), answers.end(), "") != answers.end()) {
    record.fail("answer", "a text", "an empty one");
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
  add_media(record, context, "frames", "frame_lists", MediaKind::kFrames, question);
  const std::string text = record.text({"question"});
  if (record.has("choices")) {
    set_choices(record, "answer", record.texts({"choices"}), question);
    // Asked as it stands: only a question that lists its options can be answered by letter.
    question.has_letters = listed_options(text).size() == question.choices.size();
    if (!question.has_letters) check_texts_differ(record, question.choices);
  } else if (record.at("answer").is_array()) {
    question.answers = record.texts({"answer"});
    check_answers(record, question.answers);
  } else if (const auto answer = record.text_or_number({"answer"})) {
    question.answers.push_back(*answer);
    check_answers(record, question.answers);
  } else {
    record.fail("answer", "text");
  }
  question.prompt.push_back({.text = text});
  add_needles(record, question);
  return question;
}

}  // namespace plateau::eval

// MM-NIAH (arXiv:2406.07230): a document of text and pictures, with <image> where a picture stands.
//   {"id", "images_list": [...], "context", "question", "answer": text | option index | list,
//    "meta": {"choices": [...] | null, "choices_image_path": [...] | null, ...}}
// choices may also stand beside meta.
#include <fmt/format.h>

#include "eval/readers/readers.h"

namespace plateau::eval {
namespace {

constexpr const char* kPlaceholder = "<image>";

/// Appends text and, for each placeholder in it, the next picture.
void add_with_pictures(const JsonRecord& record, const std::string& text, size_t n_pictures,
                       size_t& next_picture, std::vector<PromptPart>& prompt) {
  size_t begin = 0;
  while (true) {
    const size_t at = text.find(kPlaceholder, begin);
    const std::string before = text.substr(begin, at - begin);
    if (!before.empty()) prompt.push_back({.text = before});
    if (at == std::string::npos) return;
    if (next_picture == n_pictures) {
      record.fail("images_list", "a picture for each <image>", fmt::format("{}", n_pictures));
    }
    prompt.push_back({.media = static_cast<int>(next_picture++)});
    begin = at + std::string_view(kPlaceholder).size();
  }
}

std::vector<std::string> optional_texts(const JsonRecord& record, const char* field) {
  if (record.has(field)) return record.texts({field});
  if (!record.at("meta").is_object()) return {};
  const JsonRecord meta = record.object("meta");
  return meta.has(field) ? meta.texts({field}) : std::vector<std::string>();
}

void add_picture_options(const std::vector<std::string>& paths, const RecordContext& context,
                         SetQuestion& question) {
  for (size_t i = 0; i < paths.size(); ++i) {
    question.prompt.push_back({.text = fmt::format("\n{}. ", option_letter(static_cast<int>(i)))});
    question.prompt.push_back({.media = static_cast<int>(question.media.size())});
    question.media.push_back({media_path(context, paths[i]), MediaKind::kImage});
  }
  question.prompt.push_back({.text = fmt::format("\n{}", kAnswerWithLetter)});
}

}  // namespace

SetQuestion read_mm_niah(const JsonRecord& record, const RecordContext& context) {
  SetQuestion question;
  question.id =
      context.file_stem + "/" +
      record.text_or_number({"id", "question_id"}).value_or(fmt::format("{}", context.index));
  question.kind = context.file_stem;
  for (const std::string& path : record.texts({"images_list"})) {
    question.media.push_back({media_path(context, path), MediaKind::kImage});
  }
  const size_t n_listed = question.media.size();
  size_t next_picture = 0;
  add_with_pictures(record, record.text({"context"}), n_listed, next_picture, question.prompt);
  question.prompt.push_back({.text = "\n"});

  const std::vector<std::string> choices = optional_texts(record, "choices");
  const std::vector<std::string> pictures = optional_texts(record, "choices_image_path");
  std::string text = record.text({"question"});
  if (!choices.empty()) {
    set_choices(record, "answer", choices, question);
    text = with_options(text, choices);
  } else if (!pictures.empty()) {
    set_choices(record, "answer", std::vector<std::string>(pictures.size()), question);
  } else {
    text += fmt::format("\n{}", kAnswerWithWord);
    if (record.at("answer").is_array()) {
      question.answers = record.texts({"answer"});
      question.is_list = true;
      if (question.answers.empty()) record.fail("answer", "at least one element");
    } else if (const auto answer = record.text_or_number({"answer"})) {
      question.answers.push_back(*answer);
    } else {
      record.fail("answer", "text, an option's index or a list");
    }
  }
  add_with_pictures(record, text, n_listed, next_picture, question.prompt);
  if (next_picture != n_listed) {
    record.fail("images_list", fmt::format("{} pictures, one for each <image>", next_picture),
                fmt::format("{}", n_listed));
  }
  if (choices.empty() && !pictures.empty()) add_picture_options(pictures, context, question);
  return question;
}

}  // namespace plateau::eval

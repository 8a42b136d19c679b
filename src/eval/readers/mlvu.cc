// MLVU (arXiv:2406.04264): one JSON array per task (json/1_plotQA.json), its films in
// video/1_plotQA/.
//   {"video", "duration", "question", "candidates": [...], "answer": an option's text,
//    "question_type"}
// The test split may give "options" and letters, and "question_id".
#include <fmt/format.h>

#include "eval/readers/readers.h"

namespace plateau::eval {

SetQuestion read_mlvu(const JsonRecord& record, const RecordContext& context) {
  SetQuestion question;
  question.kind = record.text_or({"question_type", "task_type"}, context.file_stem);
  const std::string video = record.text({"video", "video_name"});
  question.id = record.text_or_number({"question_id"})
                    .value_or(fmt::format("{}/{}", question.kind, context.index));
  question.media.push_back(
      {media_path(context, context.file_stem + "/" + video), MediaKind::kVideo});
  set_choices(record, "answer", without_letters(record.texts({"candidates", "options"})), question);
  question.prompt = {{.media = 0},
                     {.text = with_options(record.text({"question"}), question.choices)}};
  return question;
}

}  // namespace plateau::eval

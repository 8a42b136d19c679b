// Video-MME (arXiv:2405.21075), exported to JSON or JSON lines. One question per record:
//   {"video_id", "videoID", "duration", "domain", "sub_category", "task_type", "question_id",
//    "question", "options": ["A. ...", ...], "answer": "B"}
// or, as its evaluation script takes them, one film per record with "questions": [...].
// "videoID" names the film (data/VIDEOID.mp4).
#include <fmt/format.h>

#include <filesystem>

#include "eval/readers/readers.h"

namespace plateau::eval {

SetQuestion read_videomme(const JsonRecord& record, const RecordContext& context) {
  SetQuestion question;
  // "duration" is short, medium or long: what results are told apart by.
  const std::string duration = record.text_or({"duration"}, "");
  const std::string task = record.text_or({"task_type", "sub-task", "sub_category"}, "");
  question.kind = duration.empty() || task.empty() ? duration + task : duration + "/" + task;
  question.id = record.text_or_number({"question_id"}).value_or(fmt::format("{}", context.index));
  std::string video = record.text({"videoID", "video_id", "video"});
  if (std::filesystem::path(video).extension().empty()) video += ".mp4";
  question.media.push_back({media_path(context, video), MediaKind::kVideo});
  set_choices(record, "answer", without_letters(record.texts({"options"})), question);
  question.prompt = {{.media = 0},
                     {.text = with_options(record.text({"question"}), question.choices)}};
  return question;
}

}  // namespace plateau::eval

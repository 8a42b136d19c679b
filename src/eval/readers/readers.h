// The readers of public question formats. Each turns one record into one SetQuestion; where the
// records come from is dataset.cc's business.
#pragma once

#include <string>

#include "eval/dataset.h"
#include "eval/readers/json_record.h"

namespace plateau::eval {

/// Where a record stands, besides its own fields.
struct RecordContext {
  std::string media_root;  // folder that media paths are relative to
  std::string file_stem;   // of the file: "1_plotQA"
  int index = 0;           // of the record in the whole set, from 0
};

/// Errors: kCorrupt, naming the field.
SetQuestion read_plateau(const JsonRecord& record, const RecordContext& context);
SetQuestion read_mm_niah(const JsonRecord& record, const RecordContext& context);
SetQuestion read_vstar(const JsonRecord& record, const RecordContext& context);
SetQuestion read_mlvu(const JsonRecord& record, const RecordContext& context);
SetQuestion read_videomme(const JsonRecord& record, const RecordContext& context);

// Shared by readers.

/// `path` under the media folder; an absolute path stays as it is.
std::string media_path(const RecordContext& context, const std::string& path);

/// "A" for 0. REQUIRES: 0 <= index < 26.
std::string option_letter(int index);

/// The options below a question, one a line, and what to answer with.
std::string with_options(const std::string& question, const std::vector<std::string>& choices);

inline constexpr const char* kAnswerWithLetter =
    "Answer with the option's letter from the given choices directly.";
inline constexpr const char* kAnswerWithWord = "Answer the question using a single word or phrase.";

/// Sets choices, has_letters and right_choice from an answer that is a letter ("B", "(B)", "B."),
/// an index, or an option's text.
void set_choices(const JsonRecord& record, const std::string& answer_field,
                 std::vector<std::string> choices, SetQuestion& question);

/// The texts behind "A.", "B.", ... or "(A)", "(B)", ... at the beginnings of lines.
std::vector<std::string> listed_options(const std::string& text);

/// Options as they are listed, without a leading "A. " or "(A) ".
std::vector<std::string> without_letters(std::vector<std::string> options);

}  // namespace plateau::eval

// A set of needle pictures or films with questions and answers, as a folder:
//   needle-0000.jpg ...  the pictures
//   set.jsonl            one JSON object per question:
//     {"id": "0000-cat", "image": "needle-0000.jpg", "kind": "number",
//      "question": "What number is on the cat?", "answer": "7", "choices": ["0", ... "9"],
//      "needle": {"x", "y", "w", "h", "cell": [col, row]}, "needles": [the same],
//      "grid": [n_cols, n_rows], "width", "height", "seed"}
//   scenes.jsonl         one JSON object per picture: {"image", "grid", "width", "height", "seed",
//      "background", "drawings": [{"object", "color", "size", "number", "words", "x", "y", "w",
//      "h", "cell"}, ...]}, fields that do not apply being left out
// A set of films has "video" in place of "image", "seconds" and "fps" beside "width", and in each
// needle and drawing "start_s" and "end_s", between which it is there.
// "image" is relative to the folder; "seed" makes that one picture again with write_scene. "needle"
// is there when one drawing answers the question, "needles" holds all that do. "choices" is left
// out for open questions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "eval/film_scene.h"
#include "eval/question.h"
#include "eval/scene.h"

namespace plateau::eval {

enum class PictureFormat { kJpeg, kPng };

/// By the names "jpg", "jpeg" and "png". Errors: kInvalidArgument.
PictureFormat parse_picture_format(const std::string& name);

enum class FilmFormat { kMp4, kMkv, kAvi };

/// By the names "mp4", "mkv" and "avi". Errors: kInvalidArgument.
FilmFormat parse_film_format(const std::string& name);

struct NeedleSetOptions {
  std::string out_dir;            // made when it does not exist
  int n_pictures = 1;             // or films
  int questions_per_picture = 1;  // fewer where a scene has no more to ask; see ask_about
  std::vector<QuestionKind> kinds = {QuestionKind::kNumber};
  int n_wordings = 1;
  PictureFormat format = PictureFormat::kJpeg;
  std::string photos_dir;  // each picture takes one of its *.jpg, *.jpeg, *.png, *.webp as backdrop
  SceneOptions scene;      // its seed is the set's: each picture's own is derived from it
  std::optional<FilmOptions> film = {};  // films of this kind; their photos are those of photos_dir
  FilmFormat film_format = FilmFormat::kMp4;
};

/// Called after each picture, and after each frame of a film, of which n_done then has a part. What
/// it throws ends the making; what is finished stays.
using NeedleSetProgress = std::function<void(double n_done, int n_pictures)>;

struct NeedleSet {
  std::string jsonl_path;
  int n_pictures = 0;
  int n_questions = 0;
  std::map<QuestionKind, int> n_fewer;  // than asked for, by kind; scenes had no more
};

/// Which questions are fewer than were asked for, and why; empty when there are all.
std::string shortfall_text(const NeedleSet& set);

/// Files of the same names are replaced. The lines of a picture are written as soon as it is
/// finished, so that what an interruption leaves is a smaller set.
/// `progress` may be empty. Errors: those of write_scene and write_film_scene; kInvalidArgument for
/// an option, and for a set without any question, though its pictures are written; kNotFound when
/// photos_dir is no folder or holds no photograph; kUnavailable when the folder cannot be made or
/// written.
NeedleSet write_needle_set(const NeedleSetOptions& options, const NeedleSetProgress& progress);

}  // namespace plateau::eval

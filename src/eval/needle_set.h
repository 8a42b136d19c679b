// A set of needle pictures with questions and answers, as a folder:
//   needle-0000.jpg ...  the pictures
//   set.jsonl            one JSON object per question:
//     {"id": "0000-cat", "image": "needle-0000.jpg", "question": "What number is on the cat?",
//      "answer": "7", "needle": {"x", "y", "w", "h", "cell": [col, row]},
//      "grid": [n_cols, n_rows], "width", "height", "seed"}
// "image" is relative to the folder; "seed" makes that one picture again with write_scene.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "eval/scene.h"

namespace plateau::eval {

enum class PictureFormat { kJpeg, kPng };

/// By the names "jpg", "jpeg" and "png". Errors: kInvalidArgument.
PictureFormat parse_picture_format(const std::string& name);

struct NeedleSetOptions {
  std::string out_dir;  // made when it does not exist
  int n_pictures = 1;
  int questions_per_picture = 1;  // at most scene.n_objects, each about another object
  PictureFormat format = PictureFormat::kJpeg;
  SceneOptions scene;  // its seed is the set's: each picture's own is derived from it
};

/// Called after each picture.
using NeedleSetProgress = std::function<void(int n_done, int n_pictures)>;

struct NeedleSet {
  std::string jsonl_path;
  int n_pictures = 0;
  int n_questions = 0;
};

/// Files of the same names are replaced; set.jsonl appears only when all pictures are there.
/// `progress` may be empty. Errors: those of write_scene; kUnavailable when the folder cannot be
/// made or written.
NeedleSet write_needle_set(const NeedleSetOptions& options, const NeedleSetProgress& progress);

}  // namespace plateau::eval

// Questions about pictures and films, as every reader hands them out: what is shown, what is asked,
// and what is right.
//
// Formats and their fields: docs/eval.md. Tested by tests/eval/dataset_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace plateau::eval {

enum class MediaKind {
  kImage,
  kVideo,
  kFrames,  // a list or folder of pictures that stand for a film
};

/// A picture or a film that a question shows.
struct MediaItem {
  std::string path;  // resolved against the set's media folder
  MediaKind kind = MediaKind::kImage;
};

/// A piece of a prompt: text, or one media item where `media` is not negative.
struct PromptPart {
  std::string text = {};
  int media = -1;  // index into SetQuestion::media
};

/// Where the answer stands: a box in pixels of the upright picture; of a film, in its frames from
/// start_s until before end_s.
struct NeedleBox {
  int media = 0;  // index into SetQuestion::media
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  double start_s = 0;
  double end_s = std::numeric_limits<double>::infinity();
};

/// A question of a set, with what is right.
struct SetQuestion {
  std::string id;    // unique in its set
  std::string kind;  // category; may be empty
  std::vector<MediaItem> media;
  std::vector<PromptPart> prompt;  // the whole user turn, options and instruction included

  // Multiple choice: the options' texts ("" for an option that is a picture), and which is right.
  std::vector<std::string> choices;
  int right_choice = -1;     // -1: open question
  bool has_letters = false;  // the prompt lists the options as A, B, ...
  // Open: any of these is right. With `is_list`, they are the elements of one list, in order.
  std::vector<std::string> answers;
  bool is_list = false;

  std::vector<NeedleBox> needles;  // empty where the set does not say

  bool is_multiple_choice() const { return right_choice >= 0; }
};

enum class DatasetFormat { kAuto, kPlateau, kMmNiah, kVStar, kMlvu, kVideoMme };

/// By the names "auto", "plateau", "mm-niah", "vstar", "mlvu" and "videomme".
/// Errors: kInvalidArgument.
DatasetFormat parse_dataset_format(const std::string& name);
std::string to_string(DatasetFormat format);

struct DatasetOptions {
  std::string path;  // a file, or the folder of a set
  DatasetFormat format = DatasetFormat::kAuto;
  std::string media_root;  // folder that media paths are relative to; empty: the format's own
};

struct Dataset {
  DatasetFormat format = DatasetFormat::kPlateau;
  std::vector<std::string> files;  // that were read, sorted
  std::string hash;                // SHA-256 over the files' bytes, in that order, hex
  std::vector<SetQuestion> questions;
};

/// Media files are not looked at. Errors name file, line (or item), field, what was expected and
/// what was found: kNotFound (no such file), kCorrupt (not JSON, a wrong field, an id twice, an
/// empty set), kUnsupported (a format that is not recognised), kResourceExhausted (a file larger
/// than 1 GiB).
Dataset read_dataset(const DatasetOptions& options);

}  // namespace plateau::eval

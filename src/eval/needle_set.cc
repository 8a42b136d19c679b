// Tested by needle_set_test.cc.
#include "eval/needle_set.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/check.h"
#include "base/plural.h"
#include "eval/rng.h"
#include "eval/scene_json.h"

namespace plateau::eval {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxPictures = 1'000'000;
constexpr int kMaxQuestions = 1000;
constexpr const char* kWayOut =
    "try more --objects, other --kinds or, for when, a longer film or a shorter --needle-seconds";
// Keys of the independent random streams of a picture's seed, beside those of its scene.
constexpr uint64_t kPhotoStream = ~uint64_t{16};
constexpr uint64_t kQuestionStream = ~uint64_t{17};

/// Whether a needle, of whole frames as they are stored, can be within a third of its film. A film
/// that cannot be made is left to write_film_scene().
bool fits_a_third(const FilmOptions& film) {
  if (!(film.needle_s > 0 && film.needle_s <= film.seconds)) return true;
  const auto frames_of = [&](double seconds) {
    return std::max(1.0, std::round(seconds * static_cast<double>(film.fps)));
  };
  return 3 * frames_of(film.needle_s) <= frames_of(film.seconds);
}

/// Whether there can be one at all; known before anything is drawn.
bool can_be_asked(QuestionKind kind, const NeedleSetOptions& options) {
  if (kind == QuestionKind::kFirst) return options.scene.n_objects > 1;
  return kind != QuestionKind::kWhen || fits_a_third(*options.film);
}

void check_options(const NeedleSetOptions& options) {
  if (options.out_dir.empty()) {
    throw_error(ErrorCode::kInvalidArgument, "[needle] expected a folder to write to, got none");
  }
  if (options.n_pictures < 1 || options.n_pictures > kMaxPictures) {
    throw_error(ErrorCode::kInvalidArgument, "[needle] expected 1 to {} pictures, got {}",
                kMaxPictures, options.n_pictures);
  }
  const bool only_numbers =
      std::all_of(options.kinds.begin(), options.kinds.end(),
                  [](QuestionKind kind) { return kind == QuestionKind::kNumber; });
  const int most = only_numbers ? options.scene.n_objects : kMaxQuestions;
  if (options.kinds.empty() || options.questions_per_picture < 1 ||
      options.questions_per_picture > most) {
    throw_error(ErrorCode::kInvalidArgument,
                "[needle] expected 1 to {} questions per picture{}, got {}", most,
                only_numbers ? " (one per object)" : "", options.questions_per_picture);
  }
  if (options.n_wordings < 1 || options.n_wordings > n_question_wordings()) {
    throw_error(ErrorCode::kInvalidArgument, "[needle] expected 1 to {} wordings, got {}",
                n_question_wordings(), options.n_wordings);
  }
  if (!options.film && std::any_of(options.kinds.begin(), options.kinds.end(), is_about_time)) {
    throw_error(ErrorCode::kInvalidArgument,
                "[needle] expected films for questions about time (when, second, first), got "
                "pictures; try --film");
  }
  if (std::none_of(options.kinds.begin(), options.kinds.end(),
                   [&](QuestionKind kind) { return can_be_asked(kind, options); })) {
    throw_error(ErrorCode::kInvalidArgument,
                "[needle] expected a kind of question that these objects allow, got {} ({}); {}",
                question_kind_name(options.kinds.front()), question_supply(options.kinds.front()),
                kWayOut);
  }
  if (!options.photos_dir.empty() && !options.scene.background.empty()) {
    throw_error(ErrorCode::kInvalidArgument,
                "[needle] expected one background or a folder of photographs, got both");
  }
}

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error || !fs::is_directory(path)) {
    throw_error(ErrorCode::kUnavailable, "[needle] cannot make the folder '{}': {}", path,
                error ? error.message() : "a file has that name");
  }
}

/// Below 2^53, so that every JSON reader keeps it whole.
uint64_t picture_seed(uint64_t set_seed, int index) {
  return Rng(set_seed, static_cast<uint64_t>(index)).next() >> 11;
}

/// Paths in the order of their names.
std::vector<std::string> photos_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string extension = entry.path().extension().string();
    const bool is_photo =
        extension == ".jpg" || extension == ".jpeg" || extension == ".png" || extension == ".webp";
    std::error_code ignored;
    if (is_photo && entry.is_regular_file(ignored)) paths.push_back(entry.path().string());
  }
  if (error || paths.empty()) {
    throw_error(
        ErrorCode::kNotFound,
        "[needle] expected a folder with photographs (jpg, jpeg, png, webp) at '{}', got {}",
        folder, error ? error.message() : "none");
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// A file of lines that is whole after each of them.
class LineFile {
 public:
  explicit LineFile(const fs::path& path)
      : path_(path), file_(path, std::ios::binary | std::ios::trunc) {}

  /// Writes them all, or none of them.
  void add(const std::string& lines) {
    file_ << lines << std::flush;
    if (file_) {
      n_bytes_ += lines.size();
      return;
    }
    file_.close();
    std::error_code ignored;
    fs::resize_file(path_, n_bytes_, ignored);
    throw_error(ErrorCode::kUnavailable, "[needle] cannot write '{}'", path_.string());
  }

 private:
  fs::path path_;
  std::ofstream file_;
  uintmax_t n_bytes_ = 0;
};

const char* extension_of(const NeedleSetOptions& options) {
  if (!options.film) return options.format == PictureFormat::kPng ? "png" : "jpg";
  switch (options.film_format) {
    case FilmFormat::kMp4:
      return "mp4";
    case FilmFormat::kMkv:
      return "mkv";
    case FilmFormat::kAvi:
      break;
  }
  return "avi";
}

/// One picture or film; `on_share` is called with how much of it is done.
Scene write_medium(const NeedleSetOptions& options, const SceneOptions& scene,
                   const std::vector<std::string>& photos, const std::string& path,
                   const std::function<void(double)>& on_share) {
  if (!options.film) return write_scene(scene, path);
  FilmOptions film = *options.film;
  film.photos = photos;
  return write_film_scene(scene, film, path, [&](int64_t n_done, int64_t n_frames) {
    // The last frame does not make it whole yet.
    if (n_done < n_frames) on_share(static_cast<double>(n_done) / static_cast<double>(n_frames));
  });
}

/// How many questions of each kind a picture is asked.
std::map<QuestionKind, int> turns_of(const NeedleSetOptions& options) {
  std::map<QuestionKind, int> turns;
  for (int i = 0; i < options.questions_per_picture; ++i) {
    ++turns[options.kinds[static_cast<size_t>(i) % options.kinds.size()]];
  }
  return turns;
}

}  // namespace

std::string shortfall_text(const NeedleSet& set) {
  int n_fewer = 0;
  std::string reasons;
  for (const auto& [kind, n] : set.n_fewer) {
    n_fewer += n;
    reasons += fmt::format("{}{} of kind {} ({})", reasons.empty() ? "" : ", ", n,
                           question_kind_name(kind), question_supply(kind));
  }
  if (n_fewer == 0) return "";
  return fmt::format("{} fewer than asked for: {}", counted(n_fewer, "question"), reasons);
}

PictureFormat parse_picture_format(const std::string& name) {
  if (name == "jpg" || name == "jpeg") return PictureFormat::kJpeg;
  if (name == "png") return PictureFormat::kPng;
  throw_error(ErrorCode::kInvalidArgument, "[needle] expected format jpg or png, got '{}'", name);
}

FilmFormat parse_film_format(const std::string& name) {
  if (name == "mp4") return FilmFormat::kMp4;
  if (name == "mkv") return FilmFormat::kMkv;
  if (name == "avi") return FilmFormat::kAvi;
  throw_error(ErrorCode::kInvalidArgument,
              "[needle] expected a film's format mp4, mkv or avi, got '{}'", name);
}

NeedleSet write_needle_set(const NeedleSetOptions& options, const NeedleSetProgress& progress) {
  check_options(options);
  std::vector<std::string> photos;
  if (!options.photos_dir.empty()) photos = photos_in(options.photos_dir);
  make_folder(options.out_dir);
  const fs::path folder = options.out_dir;
  NeedleSet set;
  set.jsonl_path = (folder / "set.jsonl").string();
  // Opened when the first picture is there, so that options that are refused replace nothing.
  std::optional<LineFile> lines;
  std::optional<LineFile> scene_lines;
  for (int i = 0; i < options.n_pictures; ++i) {
    const std::string number = fmt::format("{:04}", i);
    const std::string file = fmt::format("needle-{}.{}", number, extension_of(options));
    SceneOptions scene_options = options.scene;
    scene_options.seed = picture_seed(options.scene.seed, i);
    if (!photos.empty() && !options.film) {
      scene_options.background = photos[Rng(scene_options.seed, kPhotoStream).below(photos.size())];
    }
    const Scene scene =
        write_medium(options, scene_options, photos, (folder / file).string(), [&](double share) {
          if (progress) progress(i + share, options.n_pictures);
        });
    std::string question_lines;
    std::map<QuestionKind, int> n_missing = turns_of(options);
    for (const Question& question :
         ask_about(scene, options.kinds, options.questions_per_picture, options.n_wordings,
                   Rng(scene_options.seed, kQuestionStream))) {
      question_lines += question_line(scene, question, file, number) + "\n";
      ++set.n_questions;
      --n_missing[question.kind];
    }
    for (const auto& [kind, n] : n_missing) {
      if (n > 0) set.n_fewer[kind] += n;
    }
    if (!lines) {
      lines.emplace(set.jsonl_path);
      scene_lines.emplace(folder / "scenes.jsonl");
    }
    scene_lines->add(
        scene_line(scene, file, fs::path(scene_options.background).filename().string()) + "\n");
    lines->add(question_lines);
    set.n_pictures = i + 1;
    if (progress) progress(set.n_pictures, options.n_pictures);
  }
  if (set.n_questions == 0) {
    throw_error(ErrorCode::kInvalidArgument, "[needle] expected a set with questions, got {}; {}",
                shortfall_text(set), kWayOut);
  }
  return set;
}

}  // namespace plateau::eval

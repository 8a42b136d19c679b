// Tested by needle_set_test.cc.
#include "eval/needle_set.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "eval/rng.h"

namespace plateau::eval {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kMaxPictures = 1'000'000;

void check_options(const NeedleSetOptions& options) {
  if (options.out_dir.empty()) {
    throw_error(ErrorCode::kInvalidArgument, "[needle] expected a folder to write to, got none");
  }
  if (options.n_pictures < 1 || options.n_pictures > kMaxPictures) {
    throw_error(ErrorCode::kInvalidArgument, "[needle] expected 1 to {} pictures, got {}",
                kMaxPictures, options.n_pictures);
  }
  if (options.questions_per_picture < 1 ||
      options.questions_per_picture > options.scene.n_objects) {
    throw_error(ErrorCode::kInvalidArgument,
                "[needle] expected 1 to {} questions per picture (one per object), got {}",
                options.scene.n_objects, options.questions_per_picture);
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

Json question(const Scene& scene, const Needle& needle, const std::string& image,
              const std::string& number) {
  return Json{{"id", number + "-" + needle.object},
              {"image", image},
              {"question", "What number is on the " + needle.object + "?"},
              {"answer", std::to_string(needle.digit)},
              {"needle",
               {{"x", needle.x},
                {"y", needle.y},
                {"w", needle.w},
                {"h", needle.h},
                {"cell", {needle.col, needle.row}}}},
              {"grid", {scene.n_cols, scene.n_rows}},
              {"width", scene.width},
              {"height", scene.height},
              {"seed", scene.seed}};
}

void write_text(const fs::path& path, const std::string& text) {
  const fs::path partial = path.string() + ".part";
  std::ofstream file(partial, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  std::error_code error;
  if (file) fs::rename(partial, path, error);
  if (!file || error) {
    throw_error(ErrorCode::kUnavailable, "[needle] cannot write '{}'", path.string());
  }
}

}  // namespace

PictureFormat parse_picture_format(const std::string& name) {
  if (name == "jpg" || name == "jpeg") return PictureFormat::kJpeg;
  if (name == "png") return PictureFormat::kPng;
  throw_error(ErrorCode::kInvalidArgument, "[needle] expected format jpg or png, got '{}'", name);
}

NeedleSet write_needle_set(const NeedleSetOptions& options, const NeedleSetProgress& progress) {
  check_options(options);
  make_folder(options.out_dir);
  const fs::path folder = options.out_dir;
  const char* extension = options.format == PictureFormat::kPng ? "png" : "jpg";
  NeedleSet set;
  std::string lines;
  for (int i = 0; i < options.n_pictures; ++i) {
    const std::string number = fmt::format("{:04}", i);
    const std::string image = fmt::format("needle-{}.{}", number, extension);
    SceneOptions scene_options = options.scene;
    scene_options.seed = picture_seed(options.scene.seed, i);
    const Scene scene = write_scene(scene_options, (folder / image).string());
    // Needles come in random order, so the first are a fair choice.
    for (int k = 0; k < options.questions_per_picture; ++k) {
      lines += question(scene, scene.needles[k], image, number).dump() + "\n";
      ++set.n_questions;
    }
    set.n_pictures = i + 1;
    if (progress) progress(set.n_pictures, options.n_pictures);
  }
  set.jsonl_path = (folder / "set.jsonl").string();
  write_text(set.jsonl_path, lines);
  return set;
}

}  // namespace plateau::eval

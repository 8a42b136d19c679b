#include "eval/dataset.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "eval/fingerprint.h"
#include "eval/readers/readers.h"

namespace plateau::eval {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxBytes = int64_t{1} << 30;

constexpr std::array<std::pair<DatasetFormat, const char*>, 6> kFormats = {
    {{DatasetFormat::kAuto, "auto"},
     {DatasetFormat::kPlateau, "plateau"},
     {DatasetFormat::kMmNiah, "mm-niah"},
     {DatasetFormat::kVStar, "vstar"},
     {DatasetFormat::kMlvu, "mlvu"},
     {DatasetFormat::kVideoMme, "videomme"}}};

bool is_question_file(const fs::path& path) {
  return path.extension() == ".jsonl" || path.extension() == ".json";
}

/// The question files of a folder: the one with a known name, else all in it or in its json/.
std::vector<fs::path> question_files(const fs::path& folder) {
  for (const char* name : {"set.jsonl", "test_questions.jsonl"}) {
    std::error_code error;
    if (fs::is_regular_file(folder / name, error)) return {folder / name};
  }
  std::vector<fs::path> files;
  for (const fs::path& place : {folder, folder / "json", folder / "annotations"}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(place, error)) {
      if (entry.is_regular_file(error) && is_question_file(entry.path())) {
        files.push_back(entry.path());
      }
    }
    if (!files.empty()) break;
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<fs::path> find_files(const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return {path};
  if (!fs::is_directory(path, error)) {
    throw_error(ErrorCode::kNotFound, "[{}] expected a question file or a folder, got nothing",
                path);
  }
  std::vector<fs::path> files = question_files(path);
  if (files.empty()) {
    throw_error(ErrorCode::kNotFound,
                "[{}] expected set.jsonl, test_questions.jsonl or other .jsonl or .json files, "
                "got none",
                path);
  }
  return files;
}

std::string read_whole(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (!error && size > static_cast<uintmax_t>(kMaxBytes)) {
    throw_error(ErrorCode::kResourceExhausted,
                "[{}] expected at most {} bytes of questions, got {}", path.string(), kMaxBytes,
                size);
  }
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (error || !file) {
    throw_error(ErrorCode::kNotFound, "[{}] cannot be opened for reading", path.string());
  }
  return text;
}

DatasetFormat recognise(const JsonRecord& record) {
  if (record.has("images_list") && record.has("context")) return DatasetFormat::kMmNiah;
  if (record.has("text") && record.has("label") && record.has("image")) {
    return DatasetFormat::kVStar;
  }
  if ((record.has("videoID") || record.has("video_id")) &&
      (record.has("options") || record.has("questions"))) {
    return DatasetFormat::kVideoMme;
  }
  if ((record.has("video") || record.has("video_name")) &&
      (record.has("candidates") || record.has("question_type"))) {
    return DatasetFormat::kMlvu;
  }
  if (record.has("question") && record.has("answer") && record.has("id")) {
    return DatasetFormat::kPlateau;
  }
  throw_error(ErrorCode::kUnsupported,
              "[{}] expected the fields of a known format (plateau, mm-niah, vstar, mlvu, "
              "videomme), got others; try --format",
              record.place());
}

/// A film's record with a list of questions, as one record per question.
std::vector<JsonRecord> one_per_question(std::vector<JsonRecord> records) {
  std::vector<JsonRecord> result;
  for (JsonRecord& record : records) {
    if (!record.has("questions")) {
      result.push_back(std::move(record));
      continue;
    }
    for (const JsonRecord& question : record.objects("questions")) {
      nlohmann::json merged = nlohmann::json::object();
      for (const char* field : {"video_id", "videoID", "duration", "domain", "sub_category"}) {
        if (record.has(field)) merged[field] = record.at(field);
      }
      for (const char* field : {"question_id", "task_type", "question", "options", "answer"}) {
        if (question.has(field)) merged[field] = question.at(field);
      }
      result.emplace_back(std::move(merged), question.place());
    }
  }
  return result;
}

/// Where a format keeps its media, beside the question file.
std::string default_media_root(DatasetFormat format, const fs::path& file) {
  const fs::path folder = file.parent_path().empty() ? fs::path(".") : file.parent_path();
  switch (format) {
    case DatasetFormat::kMmNiah:  // annotations/x.jsonl and images/
      return (folder.filename() == "annotations" ? folder.parent_path() / "images" : folder)
          .string();
    case DatasetFormat::kMlvu:  // json/x.json and video/x/
      return (folder.filename() == "json" ? folder.parent_path() / "video" : folder).string();
    case DatasetFormat::kVideoMme: {
      std::error_code error;
      return (fs::is_directory(folder / "data", error) ? folder / "data" : folder).string();
    }
    default:
      return folder.string();
  }
}

SetQuestion read_record(DatasetFormat format, const JsonRecord& record,
                        const RecordContext& context) {
  switch (format) {
    case DatasetFormat::kMmNiah:
      return read_mm_niah(record, context);
    case DatasetFormat::kVStar:
      return read_vstar(record, context);
    case DatasetFormat::kMlvu:
      return read_mlvu(record, context);
    case DatasetFormat::kVideoMme:
      return read_videomme(record, context);
    case DatasetFormat::kPlateau:
    case DatasetFormat::kAuto:
      break;
  }
  return read_plateau(record, context);
}

}  // namespace

DatasetFormat parse_dataset_format(const std::string& name) {
  std::string names;
  for (const auto& [format, known] : kFormats) {
    if (name == known) return format;
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  throw_error(ErrorCode::kInvalidArgument, "[--format] expected one of {}, got '{}'", names, name);
}

std::string to_string(DatasetFormat format) {
  for (const auto& [known, name] : kFormats) {
    if (known == format) return name;
  }
  return "";
}

Dataset read_dataset(const DatasetOptions& options) {
  Dataset dataset;
  dataset.format = options.format;
  std::string all_bytes;
  std::unordered_map<std::string, std::string> place_of_id;
  for (const fs::path& file : find_files(options.path)) {
    const std::string text = read_whole(file);
    all_bytes += text;
    dataset.files.push_back(file.string());
    std::vector<JsonRecord> records = parse_records(text, file.string());
    if (records.empty()) continue;
    if (dataset.format == DatasetFormat::kAuto) dataset.format = recognise(records.front());
    if (dataset.format == DatasetFormat::kVideoMme) records = one_per_question(std::move(records));
    RecordContext context = {.media_root = options.media_root.empty()
                                               ? default_media_root(dataset.format, file)
                                               : options.media_root,
                             .file_stem = file.stem().string()};
    for (const JsonRecord& record : records) {
      context.index = static_cast<int>(dataset.questions.size());
      SetQuestion& question =
          dataset.questions.emplace_back(read_record(dataset.format, record, context));
      const auto [before, is_new] = place_of_id.emplace(question.id, record.place());
      if (!is_new) {
        record.fail("id", fmt::format("another than that of {}", before->second),
                    "'" + question.id + "'");
      }
    }
  }
  if (dataset.questions.empty()) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected at least one question, got none", options.path);
  }
  dataset.hash = sha256(all_bytes);
  return dataset;
}

}  // namespace plateau::eval

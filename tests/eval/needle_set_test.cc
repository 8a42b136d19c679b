#include "eval/needle_set.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "eval_test_support.h"

namespace plateau::eval {
namespace {

NeedleSetOptions small_set(const std::string& out_dir) {
  NeedleSetOptions options;
  options.out_dir = out_dir;
  options.n_pictures = 3;
  options.questions_per_picture = 2;
  options.scene.width = 460;
  options.scene.height = 340;
  return options;
}

std::vector<nlohmann::json> lines_of(const std::string& path) {
  std::istringstream text(read_file(path));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(NeedleSet, LinesHaveAllFields) {
  const TempDir dir;
  int n_reports = 0;
  const NeedleSet set = write_needle_set(small_set(dir.file("set")), [&](double done, int total) {
    EXPECT_EQ(done, ++n_reports);
    EXPECT_EQ(total, 3);
  });
  EXPECT_EQ(n_reports, 3);
  EXPECT_EQ(set.n_questions, 6);
  const auto lines = lines_of(set.jsonl_path);
  ASSERT_EQ(lines.size(), 6);
  std::set<std::string> ids;
  for (const auto& line : lines) {
    ids.insert(line.at("id").get<std::string>());
    EXPECT_TRUE(std::filesystem::exists(dir.file("set/" + line.at("image").get<std::string>())));
    const std::string object = line.at("id").get<std::string>().substr(5);
    EXPECT_EQ(line.at("question"), "What number is on the " + object + "?");
    const std::string answer = line.at("answer");
    EXPECT_TRUE(answer.size() == 1 && answer >= "0" && answer <= "9") << answer;
    EXPECT_EQ(line.at("kind"), "number");
    EXPECT_EQ(line.at("choices").size(), 10);
    EXPECT_EQ(line.at("needles").size(), 1);
    const auto& needle = line.at("needle");
    EXPECT_GE(needle.at("x").get<int>(), 0);
    EXPECT_GE(needle.at("y").get<int>(), 0);
    EXPECT_LE(needle.at("x").get<int>() + needle.at("w").get<int>(), 460);
    EXPECT_LE(needle.at("y").get<int>() + needle.at("h").get<int>(), 340);
    EXPECT_LT(needle.at("cell").at(0).get<int>(), line.at("grid").at(0).get<int>());
    EXPECT_LT(needle.at("cell").at(1).get<int>(), line.at("grid").at(1).get<int>());
    EXPECT_EQ(line.at("width"), 460);
    EXPECT_EQ(line.at("height"), 340);
    EXPECT_LT(line.at("seed").get<uint64_t>(), uint64_t{1} << 53);
  }
  EXPECT_EQ(ids.size(), 6);
}

TEST(NeedleSet, TheSeedOfALineMakesItsPictureAgain) {
  const TempDir dir;
  const NeedleSetOptions options = small_set(dir.file("set"));
  const auto line = lines_of(write_needle_set(options, {}).jsonl_path).back();
  SceneOptions again = options.scene;
  again.seed = line.at("seed");
  write_scene(again, dir.file("again.jpg"));
  EXPECT_EQ(read_file(dir.file("again.jpg")),
            read_file(dir.file("set/" + line.at("image").get<std::string>())));
}

TEST(NeedleSet, SameSeedSameSetOtherSeedOtherSet) {
  const TempDir dir;
  NeedleSetOptions options = small_set(dir.file("a"));
  const std::string first = read_file(write_needle_set(options, {}).jsonl_path);
  options.out_dir = dir.file("b");
  EXPECT_EQ(read_file(write_needle_set(options, {}).jsonl_path), first);
  options.scene.seed = 2;
  EXPECT_NE(read_file(write_needle_set(options, {}).jsonl_path), first);
}

TEST(NeedleSet, ScenesListEveryDrawing) {
  const TempDir dir;
  NeedleSetOptions options = small_set(dir.file("set"));
  options.scene.variety = ObjectVariety::kColors;
  options.scene.n_objects = 5;
  options.scene.n_decoys = 6;
  options.kinds = parse_question_kinds("number,which,count,exists,where");
  options.questions_per_picture = 10;
  options.n_wordings = 2;
  write_needle_set(options, {});
  const auto scenes = lines_of(dir.file("set/scenes.jsonl"));
  ASSERT_EQ(scenes.size(), 3);
  EXPECT_EQ(scenes[1].at("image"), "needle-0001.jpg");
  int n_numbered = 0;
  for (const auto& drawing : scenes[1].at("drawings")) {
    EXPECT_EQ(drawing.contains("color"), drawing.contains("object"));
    EXPECT_TRUE(drawing.contains("cell"));
    n_numbered += drawing.contains("object") && drawing.contains("number") ? 1 : 0;
  }
  EXPECT_EQ(scenes[1].at("drawings").size(), 11);
  EXPECT_EQ(n_numbered, 5);
  std::set<std::string> kinds;
  for (const auto& line : lines_of(dir.file("set/set.jsonl"))) {
    kinds.insert(line.at("kind").get<std::string>());
    EXPECT_EQ(line.contains("needle"), line.at("needles").size() == 1);
  }
  EXPECT_GE(kinds.size(), 4);
}

TEST(NeedleSet, EachPictureTakesAPhotograph) {
  const TempDir dir;
  std::filesystem::create_directory(dir.file("photos"));
  SceneOptions photo;
  photo.width = 112;
  photo.height = 112;
  photo.n_objects = 1;
  write_scene(photo, dir.file("photos/a.png"));
  write_scene(photo, dir.file("photos/b.jpg"));
  std::ofstream(dir.file("photos/readme.txt")) << "no photograph";
  NeedleSetOptions options = small_set(dir.file("set"));
  options.n_pictures = 12;
  options.photos_dir = dir.file("photos");
  write_needle_set(options, {});
  std::set<std::string> used;
  for (const auto& scene : lines_of(dir.file("set/scenes.jsonl"))) {
    used.insert(scene.at("background").get<std::string>());
  }
  EXPECT_EQ(used, (std::set<std::string>{"a.png", "b.jpg"}));
}

TEST(NeedleSet, OfFilms) {
  const TempDir dir;
  NeedleSetOptions options = small_set(dir.file("set"));
  options.n_pictures = 2;
  options.scene.width = options.scene.height = 112;
  options.scene.n_objects = 3;
  options.film = FilmOptions{.seconds = 30};
  options.film_format = FilmFormat::kMkv;
  options.kinds = parse_question_kinds("number,when,second,first");
  options.questions_per_picture = 8;
  double last = 0;
  const NeedleSet set = write_needle_set(options, [&](double done, int total) {
    EXPECT_GT(done, last);
    EXPECT_EQ(total, 2);
    last = done;
  });
  EXPECT_EQ(last, 2);
  std::set<std::string> kinds;
  for (const auto& line : lines_of(set.jsonl_path)) {
    EXPECT_TRUE(std::filesystem::exists(dir.file("set/" + line.at("video").get<std::string>())));
    EXPECT_FALSE(line.contains("image"));
    EXPECT_EQ(line.at("seconds"), 30);
    EXPECT_EQ(line.at("fps"), 1);
    kinds.insert(line.at("kind").get<std::string>());
    for (const auto& needle : line.at("needles")) {
      EXPECT_EQ(needle.at("end_s").get<double>(), needle.at("start_s").get<double>() + 1);
    }
  }
  EXPECT_EQ(kinds.size(), 4U);
  const auto scene = lines_of(dir.file("set/scenes.jsonl")).at(1);
  EXPECT_EQ(scene.at("video"), "needle-0001.mkv");
  EXPECT_TRUE(scene.at("drawings").at(0).contains("start_s"));
}

TEST(NeedleSet, SaysWhichQuestionsAreFewer) {
  const TempDir dir;
  NeedleSetOptions options = small_set(dir.file("set"));
  EXPECT_EQ(shortfall_text(write_needle_set(options, {})), "");
  options.n_pictures = 2;
  options.scene.width = options.scene.height = 112;
  options.scene.n_objects = 1;
  options.film = FilmOptions{.seconds = 9};
  options.kinds = parse_question_kinds("number,first");
  options.questions_per_picture = 3;  // number, first, number: of one object
  const NeedleSet set = write_needle_set(options, {});
  EXPECT_EQ(set.n_questions, 2);
  EXPECT_EQ(set.n_fewer,
            (std::map<QuestionKind, int>{{QuestionKind::kNumber, 2}, {QuestionKind::kFirst, 2}}));
  EXPECT_EQ(shortfall_text(set),
            "4 questions fewer than asked for: 2 of kind number (one per object with a name of its "
            "own), 2 of kind first (two per pair of objects)");
}

TEST(NeedleSet, ASetWithoutQuestionsIsAnError) {
  const TempDir dir;
  NeedleSetOptions options = small_set(dir.file("set"));
  options.scene.width = options.scene.height = 112;
  options.scene.n_objects = 1;
  options.film = FilmOptions{.seconds = 30};
  options.kinds = {QuestionKind::kFirst};
  const auto code = [&] { return code_of([&] { write_needle_set(options, {}); }); };
  EXPECT_EQ(code(), ErrorCode::kInvalidArgument);
  options.kinds = {QuestionKind::kWhen};
  options.film->seconds = 3;
  options.film->needle_s = 1.5;
  EXPECT_EQ(code(), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(dir.file("set")));
  options.film->needle_s = 1.4;  // one frame
  options.n_pictures = 1;
  EXPECT_EQ(write_needle_set(options, {}).n_questions, 1);
  // Known only when the film is there: a needle of 2 s that fits the thirds of 7 s in some places
  // lies on a border in these.
  options.film->seconds = 7;
  options.film->needle_s = 2;
  int n_empty = 0;
  int n_made = 0;
  for (options.scene.seed = 1; options.scene.seed <= 20; ++options.scene.seed) {
    try {
      EXPECT_EQ(write_needle_set(options, {}).n_questions, 1);
      ++n_made;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find("within one third of the film"), std::string::npos);
      ++n_empty;
    }
  }
  EXPECT_GE(n_empty, 1);
  EXPECT_GE(n_made, 1);
}

TEST(NeedleSet, AFilmGoesThroughPhotographs) {
  const TempDir dir;
  std::filesystem::create_directory(dir.file("photos"));
  SceneOptions photo;
  photo.width = photo.height = 112;
  photo.n_objects = 1;
  write_scene(photo, dir.file("photos/a.png"));
  NeedleSetOptions options = small_set(dir.file("set"));
  options.n_pictures = 1;
  options.questions_per_picture = 1;
  options.scene.width = options.scene.height = 112;
  options.scene.n_objects = 1;
  options.film = FilmOptions{.seconds = 5};
  options.photos_dir = dir.file("photos");
  EXPECT_EQ(write_needle_set(options, {}).n_questions, 1);
}

TEST(NeedleSet, AnInterruptionLeavesASmallerSet) {
  const TempDir dir;
  NeedleSetOptions options = small_set(dir.file("set"));
  EXPECT_EQ(code_of([&] {
              write_needle_set(options, [](double done, int) {
                if (done == 2) throw Error(ErrorCode::kCancelled, "stop");
              });
            }),
            ErrorCode::kCancelled);
  const auto lines = lines_of(dir.file("set/set.jsonl"));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines.back().at("image"), "needle-0001.jpg");
  EXPECT_EQ(lines_of(dir.file("set/scenes.jsonl")).size(), 2U);
  // Options that are refused replace nothing.
  options.scene.n_objects = 9;
  EXPECT_EQ(code_of([&] { write_needle_set(options, {}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(lines_of(dir.file("set/set.jsonl")).size(), 4U);
}

TEST(NeedleSet, RefusesBadOptions) {
  const TempDir dir;
  const auto code = [&](auto change) {
    NeedleSetOptions options = small_set(dir.file("set"));
    change(options);
    return code_of([&] { write_needle_set(options, {}); });
  };
  EXPECT_EQ(code([](auto& o) { o.out_dir = ""; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& o) { o.n_pictures = 0; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& o) { o.questions_per_picture = 9; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& o) { o.scene.n_objects = 9; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& o) { o.scene.width = 1; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& o) { o.scene.background = "missing.jpg"; }), ErrorCode::kNotFound);
  EXPECT_EQ(code([](auto& o) { o.photos_dir = "missing"; }), ErrorCode::kNotFound);
  EXPECT_EQ(code([&](auto& o) { o.photos_dir = dir.path(); }), ErrorCode::kNotFound);
  EXPECT_EQ(code([](auto& o) { o.n_wordings = 0; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& o) { o.n_wordings = 99; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& o) { o.kinds.clear(); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([](auto& o) { o.kinds = {QuestionKind::kWhen}; }), ErrorCode::kInvalidArgument);
  std::ofstream(dir.file("taken")) << "a file";
  EXPECT_EQ(code([&](auto& o) { o.out_dir = dir.file("taken"); }), ErrorCode::kUnavailable);
}

TEST(NeedleSet, FormatsByName) {
  EXPECT_EQ(parse_picture_format("png"), PictureFormat::kPng);
  EXPECT_EQ(parse_picture_format("jpg"), PictureFormat::kJpeg);
  EXPECT_EQ(parse_film_format("avi"), FilmFormat::kAvi);
  EXPECT_EQ(code_of([] { parse_film_format("jpg"); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { parse_picture_format("gif"); }), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace plateau::eval

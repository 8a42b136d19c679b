// Films as people have them, from the command line to the figures; memory that does not grow with
// them.
#include <gmock/gmock.h>

#include <filesystem>

#include "cli/plateau_process.h"
#include "support/film_writer.h"
#include "support/memory_figures.h"
#include "support/synth.h"

namespace plateau::cli::testing {
namespace {

using test::FilmSpec;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string write_clock(const TempDir& dir, const std::string& name, int64_t n_frames,
                        FilmSpec spec = {}) {
  spec.tick_den = 1;
  test::write_film(dir.file(name), spec, n_frames, [](int64_t i, test::FilmCanvas& canvas) {
    test::draw_clock(i & 0xfffff, canvas);
  });
  return dir.file(name);
}

Finished ask(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"-p", "hi", "-n", "1"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return plateau(pico_run(all));
}

TEST(Video, FiguresOfAFilm) {
  const TempDir dir;
  const std::string film = write_clock(dir, "film.mp4", 7);
  const auto stats = stats_of({"--video", film, "-p", "hi", "-n", "1", "--fps", "0.5"});
  EXPECT_THAT(stats["images"], IsEmpty());
  ASSERT_EQ(stats["videos"].size(), 1U);
  const auto& video = stats["videos"][0];
  EXPECT_EQ(video["path"], film);
  EXPECT_EQ(video["container"], "mov");
  EXPECT_EQ(video["codec"], "mpeg4");
  EXPECT_EQ(video["original_width"], 60);
  EXPECT_EQ(video["original_height"], 48);
  EXPECT_EQ(video["used_width"], 112);
  EXPECT_EQ(video["frames"], 4);
  EXPECT_EQ(video["fps"], 0.5);
  EXPECT_EQ(video["duration_s"], 7);
  EXPECT_EQ(video["damaged"], 0);
  EXPECT_EQ(video["tokens_made"], 16);
  EXPECT_EQ(video["tokens_kept"], 16);
  EXPECT_EQ(stats["visual_tokens"], 16);
  EXPECT_GT(stats["measured_bytes"]["media"], 60 * 48 * 3);
}

TEST(Video, PlanSaysWhatRunThenDoes) {
  const TempDir dir;
  const std::string film = write_clock(dir, "film.mp4", 12);
  const std::vector<std::string> arguments = {"--video", film, "-p", "hi", "--max-frames", "5"};
  std::vector<std::string> plan_arguments = {"plan",        "-m", pico_text(), "--mmproj",
                                             pico_mmproj(), "-t", "1",         "--json"};
  plan_arguments.insert(plan_arguments.end(), arguments.begin(), arguments.end());
  const auto plan = nlohmann::json::parse(plateau(plan_arguments).out);
  const auto stats = stats_of(arguments);
  for (const char* field : {"prompt_tokens", "visual_tokens", "blocks", "notes"}) {
    EXPECT_EQ(plan[field], stats[field]) << field;
  }
  EXPECT_EQ(plan["videos"][0]["frames"], 5);
  std::erase(plan_arguments, "--json");
  EXPECT_THAT(plateau(plan_arguments).out, HasSubstr("film  "));
}

TEST(Video, OrderIsTheCommandLines) {
  const TempDir dir;
  const Needle needle = make_needle(dir);
  const std::string film = write_clock(dir, "-film.mp4", 2);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  const auto first = ask({"--video", "-film.mp4", "--image", needle.path});
  const auto last = ask({"--image", needle.path, "--video", "-film.mp4"});
  std::filesystem::current_path(before);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(last.exit_code, 0) << last.err;
  EXPECT_LT(first.err.find("-film.mp4: "), first.err.find(needle.path + ": "));
  EXPECT_LT(last.err.find(needle.path + ": "), last.err.find("-film.mp4: "));
}

TEST(Video, WrongOptionsAreUsage) {
  const TempDir dir;
  const std::string film = write_clock(dir, "film.mp4", 3);
  const std::pair<const char*, const char*> cases[] = {{"--fps", "0"},
                                                       {"--fps", "-1"},
                                                       {"--fps", "nan"},
                                                       {"--fps", "1001"},
                                                       {"--max-frames", "-1"},
                                                       {"--max-video-tokens", "-5"},
                                                       {"--video-start", "-1"},
                                                       {"--video-end", "-1"},
                                                       {"--max-video-tokens", "3"},
                                                       {"--max-frame-tokens", "-1"}};
  for (const auto& [option, value] : cases) {
    const Finished finished = ask({"--video", film, option, value});
    EXPECT_EQ(finished.exit_code, 2) << option << " " << value << ": " << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(option));
  }
  EXPECT_EQ(ask({"--video", film, "--video-start", "100"}).exit_code, 2);
  EXPECT_EQ(ask({"--video", film, "--heatmap", dir.file("map.png")}).exit_code, 2);
  const Finished blind = plateau({"run", "-m", pico_text(), "-p", "hi", "--video", film});
  EXPECT_EQ(blind.exit_code, 2);
  EXPECT_THAT(blind.err, HasSubstr("--mmproj"));
}

TEST(Video, BadFilmsAreNamed) {
  const TempDir dir;
  const std::string film = write_clock(dir, "film.mkv", 60, {.container = "matroska"});
  const std::string bytes = media::testing::read_file(film);
  for (const std::string& bad :
       {dir.file("none.mp4"), dir.path(), dir.write("text.mp4", "not a film\n"),
        dir.write("empty.mp4", ""), dir.write("head.mkv", bytes.substr(0, 200)),
        write_clock(dir, "sound.mkv", 3,
                    {.container = "matroska", .sound = true, .video = false})}) {
    const Finished finished = ask({"--video", bad});
    EXPECT_EQ(finished.exit_code, 3) << bad << ": " << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(std::filesystem::path(bad).filename().string()));
    EXPECT_THAT(finished.out, IsEmpty());
  }
  EXPECT_EQ(ask({"--frames", dir.write("list.txt", "none.png\n")}).exit_code, 3);
}

TEST(Video, DamageIsTold) {
  const TempDir dir;
  const std::string film = write_clock(dir, "film.mkv", 120, {.container = "matroska"});
  std::string bytes = media::testing::read_file(film);
  for (size_t i = bytes.size() / 3; i < bytes.size() / 3 + 3000; ++i) bytes[i] = 'x';
  const std::string bad = dir.write("bad.mkv", bytes);
  EXPECT_THAT(ask({"--video", bad}).err, HasSubstr("damaged"));
  const auto stats = stats_of({"--video", bad, "-p", "hi", "-n", "1"});
  EXPECT_GT(stats["videos"][0]["damaged"], 0);
  EXPECT_THAT(stats["notes"].dump(), HasSubstr("bad.mkv"));
  EXPECT_EQ(stats["videos"][0]["tokens_kept"], stats["videos"][0]["tokens_made"]);
}

TEST(Video, AFilmThatEndsEarlyIsTold) {
  const TempDir dir;
  const std::string film = write_clock(dir, "film.mkv", 120, {.container = "matroska"});
  const std::string bytes = media::testing::read_file(film);
  const Finished finished =
      ask({"--video", dir.write("cut.mkv", bytes.substr(0, bytes.size() / 2))});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("the film says that it lasts 120"));
}

TEST(Video, AListAndAFolderOfFrames) {
  const TempDir dir;
  std::filesystem::create_directory(dir.file("frames"));
  std::string list;
  for (int i = 0; i < 12; ++i) {
    const std::string name = "frame" + std::to_string(i) + ".png";
    media::testing::write_png(media::testing::card(), dir.file("frames/" + name));
    list += "frames/" + name + "\t" + std::to_string(0.5 * i) + "\n";
  }
  const auto folder = stats_of({"--frames", dir.file("frames"), "-p", "hi", "-n", "1"});
  EXPECT_EQ(folder["videos"][0]["frames"], 12);
  EXPECT_EQ(folder["videos"][0]["fps"], 1);
  const auto listed = stats_of({"--frames", dir.write("list.txt", list), "-p", "hi", "-n", "1",
                                "--max-frames", "6", "--video-end", "5"});
  EXPECT_EQ(listed["videos"][0]["frames"], 6);
  EXPECT_EQ(listed["visual_tokens"], 24);
}

TEST(Video, AnInterruptEndsItWithin) {
  const TempDir dir;
  const std::string film = write_clock(dir, "film.mp4", 2000);
  const Finished finished = plateau(pico_run({"--video", film, "-p", "hi", "--block", "64"}),
                                    {.interrupt_after = "tiles"});
  EXPECT_EQ(finished.exit_code, 130) << finished.err;
}

/// Films of a minute, ten and sixty, with the same budget and blocks.
void expect_flat(const std::vector<std::string>& pair) {
  const TempDir dir;
  nlohmann::json first;
  for (const int64_t seconds : {60, 600, 3600}) {
    const std::string film =
        write_clock(dir, "film.mkv", seconds,
                    {.container = "matroska", .width = 160, .height = 120, .gop = 60});
    std::vector<std::string> arguments = {"run",
                                          "-t",
                                          "1",
                                          "--device",
                                          "CPU",
                                          "--video",
                                          film,
                                          "-p",
                                          "hi",
                                          "-n",
                                          "1",
                                          "--kv-budget",
                                          "512",
                                          "--block",
                                          "256",
                                          "--stats-json",
                                          dir.file("stats.json")};
    arguments.insert(arguments.end(), pair.begin(), pair.end());
    const Finished finished = plateau(arguments);
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    const auto stats = nlohmann::json::parse(media::testing::read_file(dir.file("stats.json")));
    EXPECT_EQ(stats["videos"][0]["frames"], seconds);
    const auto measured = stats["measured_bytes"]["total"].get<double>();
    EXPECT_LE(measured, stats["plan_bytes"]["total"].get<double>()) << seconds;
    if (first.is_null()) first = stats;
    for (const char* part : {"kv", "compute", "encoder", "media"}) {
      EXPECT_NEAR(stats["measured_bytes"][part].get<double>(),
                  first["measured_bytes"][part].get<double>(), 128 << 10)
          << part;
    }
    const auto minute = first["measured_bytes"]["total"].get<double>();
    // A minute may leave some of the arena empty; the heap grows in steps of 128 KiB.
    EXPECT_LE(measured, 1.02 * minute + (192 << 10)) << seconds;
    ::testing::Test::RecordProperty("peak_" + std::to_string(seconds),
                                    nlohmann::json{{"tokens", stats["prompt_tokens"]},
                                                   {"plan", stats["plan_bytes"]},
                                                   {"measured", stats["measured_bytes"]}}
                                        .dump());
  }
}

TEST(VideoMemory, AnHourIsAsAMinute) {
  if (!test::kMemoryIsOurs) GTEST_SKIP() << "memory is the sanitizer's";
  expect_flat({"-m", pico_text(), "--mmproj", pico_mmproj()});
}

TEST(VideoMemory, AnHourIsAsAMinuteInPairsOfFrames) {
  if (!test::kMemoryIsOurs) GTEST_SKIP() << "memory is the sanitizer's";
  const TempDir dir;
  test::write_tiny_text({.arch = "qwen2vl"}, dir.file("text.gguf"));
  test::write_tiny_qwen_vision({}, dir.file("mmproj.gguf"));
  expect_flat({"-m", dir.file("text.gguf"), "--mmproj", dir.file("mmproj.gguf")});
}

}  // namespace
}  // namespace plateau::cli::testing

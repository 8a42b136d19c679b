#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "media/fixtures.h"
#include "media/frame_list.h"

namespace plateau::media {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TempDir;

std::vector<std::string> names(const std::vector<ListedFrame>& frames) {
  std::vector<std::string> all;
  for (const ListedFrame& frame : frames) {
    all.push_back(std::filesystem::path(frame.path).filename().string());
  }
  return all;
}

std::vector<double> times(const std::vector<ListedFrame>& frames) {
  std::vector<double> all;
  for (const ListedFrame& frame : frames) all.push_back(frame.timestamp_s);
  return all;
}

TEST(FrameList, NamesAndTimes) {
  const TempDir dir;
  const auto frames =
      list_frames(dir.write("list.txt",
                            "\xef\xbb\xbf"
                            "a.png\t0\r\nwith space.png\t0.5\n\n-c.png 2.25\n/d.png 1e1"),
                  1.0);
  EXPECT_THAT(names(frames), ElementsAre("a.png", "with space.png", "-c.png", "d.png"));
  EXPECT_THAT(times(frames), ElementsAre(0.0, 0.5, 2.25, 10.0));
  EXPECT_EQ(frames[0].path, dir.file("a.png"));
  EXPECT_EQ(frames[3].path, "/d.png");
}

TEST(FrameList, WithoutTimesFramesAreEvenlyApart) {
  const TempDir dir;
  const auto frames = list_frames(dir.write("list.txt", "a b.png\nc.png\n#d.png\n7\n"), 2.0);
  EXPECT_THAT(names(frames), ElementsAre("a b.png", "c.png", "#d.png", "7"));
  EXPECT_THAT(times(frames), ElementsAre(0.0, 0.5, 1.0, 1.5));
}

TEST(FrameList, ErrorsNameTheLine) {
  const TempDir dir;
  const auto message = [&](const std::string& text) {
    const Error error = error_of([&] { list_frames(dir.write("list.txt", text), 1.0); });
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.what();
    return std::string(error.what());
  };
  EXPECT_THAT(message("a.png\t0\n\nb.png\tsoon\n"), HasSubstr("'soon' in line 3"));
  EXPECT_THAT(message("a.png\t-1\n"), HasSubstr("'-1' in line 1"));
  EXPECT_THAT(message("a.png nan\n"), HasSubstr("line 1"));
  EXPECT_THAT(message("a.png inf\n"), HasSubstr("line 1"));
  EXPECT_THAT(message("a.png 2\nb.png 1\n"), HasSubstr("1 s after 2 s in line 2"));
  EXPECT_THAT(message("a.png 2\nb.png\n"), HasSubstr("a line without in line 2"));
  EXPECT_THAT(message("a.png\nb.png 2\n"), HasSubstr("a line with in line 2"));
  EXPECT_THAT(message("\t3\n"), HasSubstr("file name before the time"));
  EXPECT_THAT(message("\n\n"), HasSubstr("got none"));
  EXPECT_THAT(message(std::string("a\0b\n", 4)), HasSubstr("zero byte in line 1"));
}

TEST(FrameList, RefusesWhatIsNoList) {
  const TempDir dir;
  const auto code = [](const std::string& path, double fps = 1.0) {
    return error_of([&] { list_frames(path, fps); }).code();
  };
  EXPECT_EQ(code(dir.file("none.txt")), ErrorCode::kNotFound);
  EXPECT_EQ(code(dir.write("empty.txt", "")), ErrorCode::kCorrupt);
  ASSERT_EQ(::mkfifo(dir.file("fifo").c_str(), 0600), 0);
  EXPECT_EQ(code(dir.file("fifo")), ErrorCode::kUnsupported);
  EXPECT_EQ(code(dir.write("list.txt", "a.png\n"), 0.0), ErrorCode::kInvalidArgument);
}

TEST(FrameFolder, NumbersInNamesCountByValue) {
  const TempDir dir;
  for (const char* name : {"frame10.png", "frame9.png", "frame010b.png", ".hidden", "frame2.png",
                           "a.png", "frame2b.png", "frame02.png"}) {
    dir.write(name, "x");
  }
  std::filesystem::create_directory(dir.file("folder"));
  const auto frames = list_frames(dir.path(), 4.0);
  EXPECT_THAT(names(frames), ElementsAre("a.png", "frame02.png", "frame2.png", "frame2b.png",
                                         "frame9.png", "frame10.png", "frame010b.png"));
  EXPECT_EQ(frames[6].timestamp_s, 1.5);
}

TEST(FrameFolder, WithoutPicturesIsAnError) {
  const TempDir dir;
  EXPECT_EQ(error_of([&] { list_frames(dir.path(), 1.0); }).code(), ErrorCode::kNotFound);
}

TEST(PickFrames, SpreadsACapAndKeepsAPart) {
  std::vector<ListedFrame> frames;
  for (int i = 0; i < 10; ++i) frames.push_back({std::to_string(i), double(i)});
  EXPECT_THAT(names(pick_frames(frames, {.max_frames = 2})), ElementsAre("2", "7"));
  EXPECT_THAT(names(pick_frames(frames, {.max_frames = 1})), ElementsAre("5"));
  EXPECT_THAT(names(pick_frames(frames, {.max_frames = 3})), ElementsAre("1", "5", "8"));
  EXPECT_THAT(names(pick_frames(frames, {.start_s = 3, .end_s = 5})), ElementsAre("3", "4"));
  EXPECT_EQ(pick_frames(frames, {}).size(), 10u);
  EXPECT_EQ(pick_frames(frames, {.max_frames = 10}).size(), 10u);
  EXPECT_EQ(error_of([&] { pick_frames(frames, {.start_s = 10}); }).code(),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace plateau::media

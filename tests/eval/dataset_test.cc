// Every public format in its documented variants, and what is wrong with wrong ones.
#include "eval/dataset.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "eval/eval_test_support.h"

namespace plateau::eval {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DatasetTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = dir_.file(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string path(const std::string& name = "") const { return dir_.file(name); }

  static Dataset read(const std::string& path, const std::string& format = "auto",
                      const std::string& media = "") {
    return read_dataset(
        {.path = path, .format = parse_dataset_format(format), .media_root = media});
  }
  static Error error_of(const std::string& path, const std::string& format = "auto") {
    try {
      read(path, format);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "was read";
    return {ErrorCode::kInternal, ""};
  }

 private:
  TempDir dir_;
};

std::string text_of(const SetQuestion& question) {
  std::string text;
  for (const PromptPart& part : question.prompt) {
    text += part.media < 0 ? part.text : fmt::format("<{}>", part.media);
  }
  return text;
}

TEST_F(DatasetTest, ReadsOurOwnSets) {
  write(
      "set.jsonl",
      R"({"id": "0-cat", "image": "a.jpg", "question": "What number?", "answer": "7",)"
      R"( "needle": {"x": 10, "y": 20, "w": 30, "h": 40, "cell": [0, 1]}, "kind": "single"})"
      "\n\n"
      R"({"id": 2, "images": ["a.jpg", "/b.jpg"], "question": "Which?", "answer": "B",)"
      R"( "choices": ["left", "right"], "needles": [{"image": 1, "x": 1, "y": 2, "w": 3, "h": 4}]})"
      "\n"
      R"({"id": "c", "image": "c.jpg", "question": "How many?", "answer": 3})"
      "\n"
      R"({"id": "d", "video": "d.mp4", "question": "What?", "answer": ["sofa", "couch"]})");
  const Dataset set = read(path());
  EXPECT_EQ(set.format, DatasetFormat::kPlateau);
  EXPECT_EQ(set.hash.size(), 64U);
  ASSERT_EQ(set.questions.size(), 4U);
  const SetQuestion& first = set.questions[0];
  EXPECT_EQ(first.id, "0-cat");
  EXPECT_EQ(first.kind, "single");
  EXPECT_EQ(first.media[0].path, path("a.jpg"));
  EXPECT_EQ(text_of(first), "<0>What number?");
  EXPECT_THAT(first.answers, ElementsAre("7"));
  ASSERT_EQ(first.needles.size(), 1U);
  EXPECT_EQ(first.needles[0].width, 30);
  const SetQuestion& second = set.questions[1];
  EXPECT_EQ(second.id, "2");
  EXPECT_EQ(second.media[1].path, "/b.jpg");
  EXPECT_EQ(second.right_choice, 1);
  EXPECT_EQ(second.needles[0].media, 1);
  EXPECT_EQ(text_of(second), "<0><1>Which?");
  EXPECT_FALSE(second.has_letters);
  EXPECT_THAT(set.questions[2].answers, ElementsAre("3"));
  EXPECT_EQ(set.questions[3].media[0].kind, MediaKind::kVideo);
  EXPECT_THAT(set.questions[3].answers, ElementsAre("sofa", "couch"));
}

TEST_F(DatasetTest, NeedlesOfFilmsHaveTimes) {
  write(
      "set.jsonl",
      R"({"id": "a", "video": "a.mp4", "question": "What?", "answer": "7",)"
      R"( "needle": {"x": 1, "y": 2, "w": 3, "h": 4, "start_s": 5, "end_s": 6.5}})"
      "\n"
      R"({"id": "b", "image": "a.jpg", "frames": "list.txt", "question": "What?", "answer": "7",)"
      R"( "needles": [{"image": 1, "start_s": 5, "end_s": 6}, {"x": 1, "y": 2, "w": 3, "h": 4}]})");
  const Dataset set = read(path());
  const NeedleBox& box = set.questions[0].needles.at(0);
  EXPECT_EQ(box.x, 1);
  EXPECT_EQ(box.start_s, 5);
  EXPECT_EQ(box.end_s, 6.5);
  const SetQuestion& second = set.questions[1];
  EXPECT_EQ(second.media.at(1).kind, MediaKind::kFrames);
  ASSERT_EQ(second.needles.size(), 2U);
  EXPECT_GE(second.needles[0].width, 1e6);  // the whole frame
  EXPECT_EQ(second.needles[0].end_s, 6);
  EXPECT_EQ(second.needles[1].media, 0);
  for (const char* needle :
       {R"({"start_s": 5, "end_s": 5})", R"({"start_s": -1, "end_s": 5})", R"({"start_s": 5})",
        R"({"start_s": 1, "end_s": 5, "x": 1})", R"({"start_s": "1", "end_s": 5})",
        R"({"image": 1, "start_s": 1, "end_s": 2})", R"({})"}) {
    write("set.jsonl",
          std::string(R"({"id": "a", "video": "a.mp4", "question": "What?", "answer": "7",)") +
              R"( "needle": )" + needle + "}");
    EXPECT_EQ(code_of([&] { read(path()); }), ErrorCode::kCorrupt) << needle;
  }
  write("set.jsonl", R"({"id": "a", "image": "a.jpg", "question": "What?", "answer": "7",)"
                     R"( "needle": {"start_s": 1, "end_s": 2}})");
  EXPECT_EQ(code_of([&] { read(path()); }), ErrorCode::kCorrupt);
}

TEST_F(DatasetTest, OurOwnQuestionsHaveLettersWhereTheyListThem) {
  write(
      "set.jsonl",
      R"({"id": 1, "image": "a.jpg", "question": "Which?\nA. left\nB. right", "answer": "B",)"
      R"( "choices": ["left", "right"]})"
      "\n"
      R"({"id": 2, "image": "a.jpg", "question": "What?", "answer": "1", "choices": ["1", "0"],)"
      R"( "needle": {"x": 1, "y": 1, "w": 1, "h": 1}, "needles": [{"x": 1, "y": 1, "w": 1, "h": 1}]})");
  const Dataset set = read(path());
  EXPECT_TRUE(set.questions[0].has_letters);
  EXPECT_EQ(set.questions[0].right_choice, 1);
  EXPECT_FALSE(set.questions[1].has_letters);
  EXPECT_EQ(set.questions[1].right_choice, 0);  // its text, though "1" could be an index
  EXPECT_EQ(set.questions[1].needles.size(), 1U);
}

TEST_F(DatasetTest, ReadsMmNiah) {
  write(
      "annotations/retrieval-image.jsonl",
      R"({"id": 0, "images_list": ["x/1.jpg", "x/2.jpg"], "context": "Once <image> upon <image>.",)"
      R"( "question": "Which one?", "answer": 1, "meta": {"choices": ["cat", "dog"],)"
      R"( "choices_image_path": null, "context_length": 5, "placed_depth": [0.1]}})"
      "\n"
      R"({"id": 1, "images_list": ["x/1.jpg"], "context": "<image>a", "question": "Which is in it?",)"
      R"( "answer": 0, "meta": {"choices": null, "choices_image_path": ["o/1.jpg", "o/2.jpg"]}})"
      "\n"
      R"({"id": 2, "images_list": [], "context": "b", "question": "Name it", "answer": "oak",)"
      R"( "meta": {"choices": null, "choices_image_path": null}})"
      "\n"
      R"({"id": 3, "images_list": [], "context": "b", "question": "Count", "answer": [1, 2],)"
      R"( "meta": {}})"
      "\n"
      R"({"id": 4, "images_list": [], "context": "b", "question": "Which", "answer": "B",)"
      R"( "choices": ["cat", "dog"]})"
      "\n");
  const Dataset set = read(path());
  EXPECT_EQ(set.format, DatasetFormat::kMmNiah);
  ASSERT_EQ(set.questions.size(), 5U);
  EXPECT_EQ(set.questions[0].id, "retrieval-image/0");
  EXPECT_EQ(set.questions[0].kind, "retrieval-image");
  EXPECT_EQ(set.questions[0].media[1].path, path("images/x/2.jpg"));
  EXPECT_EQ(text_of(set.questions[0]),
            "Once <0> upon <1>.\nWhich one?\nA. cat\nB. dog\nAnswer with the option's letter from "
            "the given choices directly.");
  EXPECT_EQ(set.questions[0].right_choice, 1);
  EXPECT_EQ(set.questions[1].media.size(), 3U);
  EXPECT_EQ(set.questions[1].right_choice, 0);
  EXPECT_THAT(text_of(set.questions[1]), HasSubstr("Which is in it?\nA. <1>\nB. <2>\nAnswer"));
  EXPECT_THAT(set.questions[2].answers, ElementsAre("oak"));
  EXPECT_FALSE(set.questions[2].is_list);
  EXPECT_THAT(set.questions[3].answers, ElementsAre("1", "2"));
  EXPECT_TRUE(set.questions[3].is_list);
  EXPECT_EQ(set.questions[4].right_choice, 1);
}

TEST_F(DatasetTest, MmNiahNeedsAPictureForEachPlaceholder) {
  for (const char* images : {"[]", R"(["a.jpg", "b.jpg"])"}) {
    const std::string file =
        write("x.jsonl", std::string(R"({"id": 0, "images_list": )") + images +
                             R"(, "context": "<image>", "question": "q", "answer": "a"})");
    const Error error = error_of(file);
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("x.jsonl:1"), HasSubstr("images_list")));
  }
}

TEST_F(DatasetTest, ReadsVStarAndItsBoxes) {
  write(
      "test_questions.jsonl",
      R"({"image": "direct_attributes/sa_1.jpg", "text": "What colour?\n(A) red\n(B) dark green\n)"
      R"(Answer with the option's letter from the given choices directly.",)"
      R"( "category": "direct_attributes", "label": "B", "question_id": "0"})"
      "\n"
      R"({"image": "relative_position/sa_2.jpg", "text": "Left?\n(A) yes\n(B) no", "label": "A"})"
      "\n");
  write("direct_attributes/sa_1.json",
        R"({"target_object": ["glove"], "bbox": [[564, 142, 155, 157]]})");
  const Dataset set = read(path());
  EXPECT_EQ(set.format, DatasetFormat::kVStar);
  ASSERT_EQ(set.questions.size(), 2U);
  EXPECT_EQ(set.questions[0].id, "direct_attributes/0");
  EXPECT_THAT(set.questions[0].choices, ElementsAre("red", "dark green"));
  EXPECT_EQ(set.questions[0].right_choice, 1);
  ASSERT_EQ(set.questions[0].needles.size(), 1U);
  EXPECT_EQ(set.questions[0].needles[0].height, 157);
  EXPECT_EQ(set.questions[1].kind, "relative_position");
  EXPECT_THAT(set.questions[1].needles, IsEmpty());
  write("direct_attributes/sa_1.json", R"({"bbox": [[1, 2, 3]]})");
  EXPECT_THAT(error_of(path()).what(), AllOf(HasSubstr("sa_1.json"), HasSubstr("bbox")));
}

TEST_F(DatasetTest, ReadsMlvu) {
  write("json/1_plotQA.json",
        R"([{"video": "movie.mp4", "duration": 480.0, "question": "What colour?",)"
        R"( "candidates": ["Yellow", "Red"], "answer": "Red", "question_type": "plotQA"}])");
  write("json/2_needle.json",
        R"([{"video": "needle_32.mp4", "question": "What?", "question_id": "N_0",)"
        R"( "options": ["(A) a hand", "(B) a foot"], "answer": "(B) a foot"}])");
  const Dataset set = read(path());
  EXPECT_EQ(set.format, DatasetFormat::kMlvu);
  ASSERT_EQ(set.questions.size(), 2U);
  EXPECT_EQ(set.questions[0].kind, "plotQA");
  EXPECT_EQ(set.questions[0].media[0].path, path("video/1_plotQA/movie.mp4"));
  EXPECT_EQ(set.questions[0].media[0].kind, MediaKind::kVideo);
  EXPECT_EQ(set.questions[0].right_choice, 1);
  EXPECT_EQ(set.questions[1].id, "N_0");
  EXPECT_THAT(set.questions[1].choices, ElementsAre("a hand", "a foot"));
  EXPECT_EQ(set.questions[1].right_choice, 1);
}

TEST_F(DatasetTest, ReadsBothVariantsOfVideoMme) {
  const std::string flat = write(
      "flat.jsonl",
      R"({"video_id": "001", "videoID": "fFjv93ACGo8", "duration": "long", "question_id": "001-1",)"
      R"( "task_type": "Counting", "question": "How many?", "options": ["A. One.", "B. Two."],)"
      R"( "answer": "B"})");
  const std::string grouped = write(
      "grouped.json",
      R"([{"video_id": "001", "duration": "short", "domain": "Film", "sub_category": "x",)"
      R"( "questions": [{"question_id": "001-1", "task_type": "Counting", "question": "How many?",)"
      R"( "options": ["A. One.", "B. Two."], "answer": "A"},)"
      R"( {"question_id": "001-2", "task_type": "OCR", "question": "What?",)"
      R"( "options": ["A. x", "B. y"], "answer": "B"}]}])");
  const Dataset one = read(flat);
  EXPECT_EQ(one.format, DatasetFormat::kVideoMme);
  EXPECT_EQ(one.questions[0].kind, "long/Counting");
  EXPECT_EQ(one.questions[0].media[0].path, path("fFjv93ACGo8.mp4"));
  EXPECT_THAT(one.questions[0].choices, ElementsAre("One.", "Two."));
  EXPECT_EQ(one.questions[0].right_choice, 1);
  const Dataset two = read(grouped);
  ASSERT_EQ(two.questions.size(), 2U);
  EXPECT_EQ(two.questions[1].id, "001-2");
  EXPECT_EQ(two.questions[1].kind, "short/OCR");
  EXPECT_EQ(two.questions[1].media[0].path, path("001.mp4"));
}

TEST_F(DatasetTest, MediaCanLieElsewhere) {
  const std::string file =
      write("set.jsonl", R"({"id": "a", "image": "a.jpg", "question": "q", "answer": "a"})");
  EXPECT_EQ(read(file, "auto", "/elsewhere").questions[0].media[0].path, "/elsewhere/a.jpg");
}

TEST_F(DatasetTest, WrongFieldsAreNamedWithLineExpectedAndFound) {
  const std::string good = R"({"id": "a", "image": "a.jpg", "question": "q", "answer": "a"})"
                           "\n";
  const std::pair<const char*, std::vector<const char*>> cases[] = {
      {R"({"id": "b", "image": "a.jpg", "answer": "a"})", {"question", "text", "nothing"}},
      {R"({"id": "b", "image": 5, "question": "q", "answer": "a"})", {"image", "text", "number 5"}},
      {R"({"id": "b", "image": "a.jpg", "question": "q"})", {"answer", "text", "nothing"}},
      {R"({"id": "b", "image": "a", "question": "q", "answer": "C", "choices": ["x", "y"]})",
       {"answer", "one of 2 options", "\"C\""}},
      {R"({"id": "b", "image": "a", "question": "q", "answer": 2, "choices": ["x", "y"]})",
       {"answer", "one of 2 options", "2"}},
      {R"({"id": "b", "image": "a", "question": "q", "answer": "x", "choices": ["x"]})",
       {"choices", "2 to 26"}},
      {R"({"id": "b", "image": "a", "question": "q", "answer": "x", "choices": ["x", null]})",
       {"choices[1]", "nothing"}},
      {R"({"id": "b", "image": "a", "question": "q", "answer": "x", "choices": ["x", "y", "x"]})",
       {"choices", "differ", "'x' twice"}},
      {R"({"id": "b", "image": "", "question": "q", "answer": "x"})", {"image", "path", "empty"}},
      {R"({"id": "b", "videos": ["a", ""], "question": "q", "answer": "x"})", {"videos", "path"}},
      {R"({"id": "b", "image": "a", "question": "q", "answer": ""})", {"answer", "text", "empty"}},
      {R"({"id": "b", "image": "a", "question": "q", "answer": ["x", ""]})", {"answer", "empty"}},
      {R"({"id": "a", "image": "a", "question": "q", "answer": "x"})", {"id", "set.jsonl:1"}},
      {R"({"id": "b", "image": "a", "question": "q", "answer": "x", "needle": 3})",
       {"needle", "object", "number 3"}},
      {R"({"id": "b", "image": "a", "question": "q", "answer": "x", "needle": {"x": 1, "y": "b"}})",
       {"y", "number", "text"}},
      {R"({"id": "b", "image": "a", "question": "q", "answer": "x",)"
       R"( "needle": {"x": 1, "y": 1, "w": 0, "h": 1}})",
       {"w", "more than 0"}},
      {R"({"id": "b", "image": "a", "question": "q", "answer": "x",)"
       R"( "needles": [{"image": 1, "x": 1, "y": 1, "w": 1, "h": 1}]})",
       {"needles[0]", "image"}},
      {R"(["b"])", {"object", "list"}},
      {R"({"id": "b", )", {"JSON"}},
      {"garbage", {"JSON", "garbage"}}};
  for (const auto& [line, parts] : cases) {
    const std::string file = write("set.jsonl", good + line + "\n" + "{}\n");
    const Error error = error_of(file, "plateau");
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << line;
    EXPECT_THAT(error.what(), HasSubstr("set.jsonl:2")) << line;
    for (const char* part : parts) EXPECT_THAT(error.what(), HasSubstr(part)) << line;
  }
}

TEST_F(DatasetTest, ArraysNameTheItemAndDamagedOnesTheLine) {
  const std::string bad_item = write(
      "x.json",
      R"([{"video": "a.mp4", "candidates": ["x", "y"], "question_type": "t", "question": "q",)"
      R"( "answer": "x"}, {"video": "a.mp4", "candidates": "x"}])");
  EXPECT_THAT(error_of(bad_item).what(),
              AllOf(HasSubstr("x.json item 2"), HasSubstr("candidates")));
  const std::string damaged = write("y.json", "[\n{},\n{]");
  EXPECT_THAT(error_of(damaged).what(), HasSubstr("y.json:3"));
}

TEST_F(DatasetTest, WhatIsNotThereOrEmptyOrUnknownIsSaid) {
  EXPECT_EQ(error_of(path("no-such.jsonl")).code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_of(path()).code(), ErrorCode::kNotFound);
  EXPECT_THAT(error_of(path()).what(), HasSubstr("set.jsonl"));
  EXPECT_EQ(error_of(write("empty.jsonl", "\n \n")).code(), ErrorCode::kCorrupt);
  EXPECT_THAT(error_of(write("empty.json", "[]")).what(), HasSubstr("at least one question"));
  const Error unknown = error_of(write("u.jsonl", R"({"prompt": "q", "target": "a"})"));
  EXPECT_EQ(unknown.code(), ErrorCode::kUnsupported);
  EXPECT_THAT(unknown.what(), AllOf(HasSubstr("u.jsonl:1"), HasSubstr("--format")));
  try {
    parse_dataset_format("mmniah");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("mm-niah"));
  }
}

TEST_F(DatasetTest, TheHashFollowsTheBytes) {
  const std::string line = R"({"id": "a", "image": "a.jpg", "question": "q", "answer": "a"})";
  const std::string one = read(write("one.jsonl", line)).hash;
  EXPECT_EQ(read(write("two.jsonl", line)).hash, one);
  EXPECT_NE(read(write("three.jsonl", line + " ")).hash, one);
}

}  // namespace
}  // namespace plateau::eval

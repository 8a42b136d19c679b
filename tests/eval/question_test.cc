#include "eval/question.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "eval/description.h"
#include "eval_test_support.h"

namespace plateau::eval {
namespace {

Drawing drawing(const char* size, const char* color, const char* object, int digit, int64_t x) {
  Drawing made;
  made.size = size;
  made.color = color;
  made.object = object;
  made.digit = digit;
  made.x = x;
  made.w = 20;
  made.h = 20;
  return made;
}

/// Two red cats, a blue cat, a blue fish without a number, a number without an object.
Scene cats() {
  Scene scene{400, 100, 4, 1, 1, 3, {}};
  scene.drawings = {drawing("small", "red", "cat", 7, 0), drawing("large", "red", "cat", 3, 100),
                    drawing("small", "blue", "cat", 3, 300),
                    drawing("large", "blue", "fish", kNoDigit, 200), drawing("", "", "", 5, 350)};
  return scene;
}

std::map<std::string, Question> all_of(const Scene& scene, QuestionKind kind) {
  std::map<std::string, Question> found;
  const QuestionKind kinds[] = {kind};
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (const Question& question : ask_about(scene, kinds, 5, 1, Rng(seed))) {
      EXPECT_EQ(found.try_emplace(question.id, question).first->second.answer, question.answer);
    }
  }
  return found;
}

TEST(Question, NumbersAreAskedByNamesThatFitOneObject) {
  const auto found = all_of(cats(), QuestionKind::kNumber);
  std::map<std::string, std::string> answers;
  for (const auto& [id, question] : found) answers[id] = question.answer;
  EXPECT_EQ(answers, (std::map<std::string, std::string>{{"number-small-red-cat", "7"},
                                                         {"number-large-red-cat", "3"},
                                                         {"number-blue-cat", "3"},
                                                         {"number-small-blue-cat", "3"}}));
  const Question& question = found.at("number-blue-cat");
  EXPECT_EQ(question.text, "What number is on the blue cat?");
  EXPECT_EQ(question.targets, std::vector<int>{2});
  EXPECT_EQ(question.choices.size(), 10);
}

TEST(Question, WhichNeedsADigitThatOneObjectCarries) {
  const auto found = all_of(cats(), QuestionKind::kWhich);
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found.at("which-7").text, "Which object carries the number 7?");
  EXPECT_EQ(found.at("which-7").answer, "red cat");
}

TEST(Question, CountsObjectsWithAndWithoutNumbers) {
  const auto found = all_of(cats(), QuestionKind::kCount);
  EXPECT_EQ(found.at("count-cat").answer, "3");
  EXPECT_EQ(found.at("count-cat").text, "How many cats are there?");
  EXPECT_EQ(found.at("count-red-cat").answer, "2");
  EXPECT_EQ(found.at("count-red-cat").targets, (std::vector<int>{0, 1}));
  EXPECT_EQ(found.at("count-blue-fish").answer, "1");
  EXPECT_EQ(found.at("count-blue-fish").text, "How many blue fish are there?");
  EXPECT_EQ(found.at("count-dog").answer, "0");
  EXPECT_TRUE(found.at("count-dog").targets.empty());
}

TEST(Question, ExistenceIsTrueOrNearlyTrue) {
  std::set<std::string> answers;
  for (const auto& [id, question] : all_of(cats(), QuestionKind::kExists)) {
    answers.insert(question.answer);
    EXPECT_EQ(question.answer == "no", question.targets.empty()) << id;
  }
  EXPECT_EQ(answers, (std::set<std::string>{"no", "yes"}));
  const auto found = all_of(cats(), QuestionKind::kExists);
  ASSERT_TRUE(found.contains("exists-orange-cat"));
  EXPECT_EQ(found.at("exists-orange-cat").text, "Is there an orange cat?");
}

TEST(Question, WhereIsAHalf) {
  const auto found = all_of(cats(), QuestionKind::kWhere);
  EXPECT_EQ(found.at("where-small-red-cat-x").answer, "left");
  EXPECT_EQ(found.at("where-blue-cat-x").answer, "right");
  EXPECT_EQ(found.at("where-blue-cat-y").answer, "top");
}

TEST(Question, KindsTakeTurnsAndWordingsVary) {
  const auto kinds = parse_question_kinds("number,exists");
  std::set<std::string> wordings;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto questions = ask_about(cats(), kinds, 4, 2, Rng(seed));
    ASSERT_EQ(questions.size(), 4);
    EXPECT_EQ(questions[0].kind, QuestionKind::kNumber);
    EXPECT_EQ(questions[1].kind, QuestionKind::kExists);
    wordings.insert(questions[0].text.substr(0, 5));
  }
  EXPECT_EQ(wordings, (std::set<std::string>{"What ", "Which"}));
}

TEST(Question, KindsByName) {
  EXPECT_EQ(parse_question_kinds("where"), std::vector<QuestionKind>{QuestionKind::kWhere});
  EXPECT_EQ(code_of([] { parse_question_kinds(""); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { parse_question_kinds("number,why"); }), ErrorCode::kInvalidArgument);
}

/// Ninety seconds: the red cat at 10, the blue fish at 29, the dog at 70.
Scene film() {
  Scene scene{112, 112, 1, 1, 1, 3, {}, 90, 1};
  scene.drawings = {drawing("", "", "cat", 7, 0), drawing("", "", "fish", 3, 0),
                    drawing("", "", "dog", 3, 0)};
  const double starts[] = {10, 29, 70};
  for (size_t i = 0; i < 3; ++i) {
    scene.drawings[i].start_s = starts[i];
    scene.drawings[i].end_s = starts[i] + 2;
  }
  return scene;
}

TEST(Question, OfAFilmAskWhen) {
  const auto found = all_of(film(), QuestionKind::kWhen);
  ASSERT_EQ(found.size(), 2U);  // the fish stays over the border of a third
  EXPECT_EQ(found.at("when-cat").answer, "beginning");
  EXPECT_EQ(found.at("when-dog").answer, "end");
  EXPECT_EQ(found.at("when-dog").targets, std::vector<int>{2});
  EXPECT_EQ(found.at("when-cat").choices.size(), 3U);
  const auto seconds = all_of(film(), QuestionKind::kSecond);
  EXPECT_EQ(seconds.at("second-fish").answer, "29");
  EXPECT_EQ(seconds.at("second-fish").text, "At which second does the fish appear?");
}

TEST(Question, OfAFilmAskWhatComesFirst) {
  const auto found = all_of(film(), QuestionKind::kFirst);
  EXPECT_EQ(found.size(), 6U);
  const Question& question = found.at("first-dog-cat");
  EXPECT_EQ(question.text, "What comes first, the dog or the cat?");
  EXPECT_EQ(question.answer, "cat");
  EXPECT_EQ(question.choices, (std::vector<std::string>{"dog", "cat"}));
  EXPECT_EQ(question.targets, (std::vector<int>{2, 0}));
}

TEST(Question, OfAFilmDoNotCallItAPicture) {
  const QuestionKind kinds[] = {QuestionKind::kCount, QuestionKind::kExists};
  for (uint64_t seed = 0; seed < 50; ++seed) {
    for (const Question& question : ask_about(film(), kinds, 4, n_question_wordings(), Rng(seed))) {
      EXPECT_EQ(question.text.find("picture"), std::string::npos) << question.text;
    }
  }
}

}  // namespace
}  // namespace plateau::eval

#include "eval/judge.h"

#include <gtest/gtest.h>

namespace plateau::eval {
namespace {

SetQuestion open_question(std::vector<std::string> answers, bool is_list = false) {
  SetQuestion question;
  question.answers = std::move(answers);
  question.is_list = is_list;
  return question;
}

SetQuestion choice_question(std::vector<std::string> choices, int right) {
  SetQuestion question;
  question.choices = std::move(choices);
  question.right_choice = right;
  question.has_letters = true;
  return question;
}

TEST(NormalizeAnswer, FollowsItsRules) {
  const std::pair<const char*, const char*> cases[] = {{"  The Cat. ", "cat"},
                                                       {"SEVEN", "7"},
                                                       {"twenty-one", "21"},
                                                       {"Twenty one", "21"},
                                                       {"ninety", "90"},
                                                       {"twenty zero", "20 0"},
                                                       {"1,000", "1000"},
                                                       {"red, green", "red green"},
                                                       {"0.5", "0.5"},
                                                       {"5.", "5"},
                                                       {"-3", "-3"},
                                                       {"3-4", "3 4"},
                                                       {"don't", "dont"},
                                                       {"A", "a"},
                                                       {"an apple a day", "apple day"},
                                                       {"a\n\tb", "b"},
                                                       {"\xC3\x9C"
                                                        "ber",
                                                        "\xC3\x9C"
                                                        "ber"},
                                                       {"someone", "someone"},
                                                       {"", ""},
                                                       {"...", ""}};
  for (const auto& [text, want] : cases) EXPECT_EQ(normalize_answer(text), want) << text;
}

TEST(OpenAnswer, EqualMeansTheWholeAnswer) {
  EXPECT_TRUE(open_answer_matches("The seven.", "7", OpenMatch::kEqual));
  EXPECT_FALSE(open_answer_matches("It is 7", "7", OpenMatch::kEqual));
  EXPECT_FALSE(open_answer_matches("77", "7", OpenMatch::kEqual));
  EXPECT_FALSE(open_answer_matches("", "7", OpenMatch::kEqual));
}

TEST(OpenAnswer, ContainsMeansWholeWordsInOrder) {
  EXPECT_TRUE(open_answer_matches("It is an oak tree!", "oak tree", OpenMatch::kContains));
  EXPECT_FALSE(open_answer_matches("a tree of oak", "oak tree", OpenMatch::kContains));
  EXPECT_FALSE(open_answer_matches("77", "7", OpenMatch::kContains));
  EXPECT_FALSE(open_answer_matches("anything", "", OpenMatch::kContains));
}

TEST(ChosenOption, ByLetter) {
  const std::vector<std::string> choices = {"red", "green", "blue", "black"};
  for (const char* text :
       {"B", "B.", "(B)", " B) green", "**B**", "B: green", "The answer is B.",
        "The answer is (B).", "Answer: B", "answer is: **B**", "Option B", "I think (B) fits best",
        "the correct choice is B, green", "Option B fits", "B\nbecause"}) {
    EXPECT_EQ(chosen_option(text, choices, true), 1) << text;
  }
}

TEST(ChosenOption, ByText) {
  const std::vector<std::string> choices = {"red", "green", "dark green", ""};
  EXPECT_EQ(chosen_option("Green.", choices, true), 1);
  EXPECT_EQ(chosen_option("It looks red to me", choices, true), 0);
  EXPECT_EQ(chosen_option("red and green", choices, true), std::nullopt);
  EXPECT_EQ(chosen_option("dark green", choices, true), 2);
}

TEST(ChosenOption, IsNoneWhereTheTextNamesNone) {
  const std::vector<std::string> choices = {"red", "green"};
  for (const char* text : {"", "A cat", "C", "b", "I do not know", "the answer is a cat", "42",
                           "The answer is A cat", "B's", "Because", "(", "answer"}) {
    EXPECT_EQ(chosen_option(text, choices, true), std::nullopt) << text;
  }
}

TEST(ChosenOption, LongAnswersAreNoTrouble) {
  EXPECT_EQ(chosen_option(std::string(1 << 20, 'x') + " the answer is B", {"red", "green"}, true),
            1);
  EXPECT_EQ(chosen_option(std::string(1 << 20, '('), {"red", "green"}, true), std::nullopt);
}

TEST(ChosenOption, AnOptionsOwnTextComesBeforeLetters) {
  // Vitamins: the text "B" is option C.
  EXPECT_EQ(chosen_option("B", {"A", "C", "B"}, true), 2);
}

TEST(ChosenOption, LettersCountOnlyWhereTheyWereListed) {
  EXPECT_EQ(chosen_option("B", {"3", "7"}, false), std::nullopt);
  EXPECT_EQ(chosen_option("seven", {"3", "7"}, false), 1);
}

TEST(JudgeText, AnyOfSeveralAnswersIsRight) {
  const SetQuestion question = open_question({"sofa", "couch"});
  EXPECT_TRUE(judge_text(question, "A couch", OpenMatch::kEqual).right());
  EXPECT_FALSE(judge_text(question, "chair", OpenMatch::kEqual).right());
}

TEST(JudgeText, ListsEarnTheShareInPlace) {
  const SetQuestion question = open_question({"1", "2", "3", "4"}, /*is_list=*/true);
  EXPECT_DOUBLE_EQ(judge_text(question, "[1, 2, 3, 4]", OpenMatch::kEqual).score, 1);
  EXPECT_DOUBLE_EQ(judge_text(question, "```json\n[1, 5, 3]\n```", OpenMatch::kEqual).score, 0.5);
  EXPECT_DOUBLE_EQ(judge_text(question, "1, 2, 0, 0", OpenMatch::kEqual).score, 0.5);
  EXPECT_DOUBLE_EQ(judge_text(question, "none", OpenMatch::kEqual).score, 0);
  EXPECT_FALSE(judge_text(question, "[1, 5, 3]", OpenMatch::kEqual).right());
}

TEST(JudgeText, AMultipleChoiceAnswerSaysWhatWasChosen) {
  const SetQuestion question = choice_question({"red", "green"}, 1);
  EXPECT_EQ(judge_text(question, "A", OpenMatch::kEqual).choice, 0);
  EXPECT_FALSE(judge_text(question, "A", OpenMatch::kEqual).right());
  EXPECT_TRUE(judge_text(question, "B", OpenMatch::kEqual).right());
  EXPECT_EQ(judge_text(question, "what?", OpenMatch::kEqual).choice, -1);
}

TEST(JudgeLikelihood, TakesTheLikeliestAndOfEqualsTheFirst) {
  const SetQuestion question = choice_question({"red", "green", "blue"}, 1);
  EXPECT_TRUE(judge_likelihood(question, {-3, -0.5, -2}).right());
  EXPECT_EQ(judge_likelihood(question, {-1, -1, -1}).choice, 0);
}

}  // namespace
}  // namespace plateau::eval

#include "eval/pending.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plateau::eval {
namespace {

const std::vector<Setting> kSettings = cross({.policies = {"snapkv", "keydiff"}, .budgets = {64}});

SetQuestion about(const std::string& id, const std::string& picture) {
  SetQuestion question;
  question.id = id;
  question.media = {{.path = picture, .kind = MediaKind::kImage}};
  return question;
}

ResultRecord answer(const std::string& id, const Setting& setting, bool is_error = false) {
  ResultRecord record;
  record.id = id;
  record.setting = setting;
  record.is_error = is_error;
  return record;
}

/// "id:settings" of each question, groups apart by "|".
std::string text_of(const std::vector<PendingGroup>& groups,
                    const std::vector<SetQuestion>& questions) {
  std::string text;
  for (const PendingGroup& group : groups) {
    if (!text.empty()) text += " |";
    for (const PendingQuestion& pending : group) {
      if (!text.empty()) text += " ";
      text += questions[pending.question].id + ":";
      for (const Setting& setting : pending.settings) text += setting.policy.front();
    }
  }
  return text;
}

TEST(Pending, QuestionsAboutOnePictureStandTogether) {
  const std::vector<SetQuestion> questions = {about("a", "1"), about("b", "1"), about("c", "2"),
                                              about("d", "1")};
  const auto groups = pending_groups(questions, kSettings, {});
  EXPECT_EQ(text_of(groups, questions), "a:sk b:sk | c:sk | d:sk");
  EXPECT_EQ(count_pairs(groups), 8U);
}

TEST(Pending, WhatWasAnsweredIsLeftOut) {
  const std::vector<SetQuestion> questions = {about("a", "1"), about("b", "2"), about("c", "2")};
  const auto groups = pending_groups(questions, kSettings,
                                     {answer("a", kSettings[0]), answer("b", kSettings[0]),
                                      answer("b", kSettings[1]), answer("z", kSettings[0])});
  EXPECT_EQ(text_of(groups, questions), "a:k | c:sk");
  EXPECT_EQ(count_pairs(groups), 3U);
}

TEST(Pending, WhatFailedIsAskedAgain) {
  const std::vector<SetQuestion> questions = {about("a", "1")};
  EXPECT_EQ(
      text_of(pending_groups(questions, kSettings, {answer("a", kSettings[0], true)}), questions),
      "a:sk");
  EXPECT_TRUE(pending_groups({}, kSettings, {}).empty());
}

}  // namespace
}  // namespace plateau::eval

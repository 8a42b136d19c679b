// Questions with one right answer about a scene. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "eval/rng.h"
#include "eval/scene.h"

namespace plateau::eval {

enum class QuestionKind {
  kNumber,  // the digit on an object; answer "7"
  kWhich,   // the object with a digit; answer "red cat"
  kCount,   // how many of a name there are; answer "0" to "4"
  kExists,  // whether there is one; answer "yes" or "no"
  kWhere,   // in which half it stands; answer "left", "right", "top" or "bottom"
  // Films only.
  kWhen,    // in which third it appears; answer "beginning", "middle" or "end"
  kSecond,  // when it appears; answer "137"
  kFirst,   // which of two appears before the other; answer "red cat"
};

/// "number", "which", "count", "exists", "where", "when", "second", "first".
const char* question_kind_name(QuestionKind kind);

/// By these names, separated by commas. Errors: kInvalidArgument.
std::vector<QuestionKind> parse_question_kinds(const std::string& names);

/// How many of a kind a scene has, in words: "one per object whose digit no other carries".
const char* question_supply(QuestionKind kind);

/// Whether only a film can be asked so.
bool is_about_time(QuestionKind kind);

struct Question {
  QuestionKind kind = QuestionKind::kNumber;
  std::string id;  // within the scene, "cat" or "count-red-cat"
  std::string text;
  std::string answer;
  std::vector<std::string> choices;  // empty: open
  std::vector<int> targets;          // indices into scene.drawings of what must be seen
};

/// Wordings that questions.json holds for the kind that has fewest.
int n_question_wordings();

/// At most n_questions different questions, their kinds taking turns; fewer where the scene has no
/// more (no digit that only one object carries, say). Number questions go through the objects in
/// the scene's order. Each is worded in one of the first n_wordings ways.
/// REQUIRES: kinds is not empty, and about time in films only; n_wordings in [1,
/// n_question_wordings()].
std::vector<Question> ask_about(const Scene& scene, std::span<const QuestionKind> kinds,
                                int n_questions, int n_wordings, Rng rng);

}  // namespace plateau::eval

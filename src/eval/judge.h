// Whether an answer is right. Pure. The rules stand in docs/eval.md.
// Tested by tests/eval/judge_test.cc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eval/dataset.h"

namespace plateau::eval {

/// Lower case, ASCII punctuation to spaces (a point or comma between digits, and a leading minus,
/// stay or go as numbers want: "1,000" is "1000", "0.5" stays), number words to digits (zero to
/// ninety-nine), no articles, single spaces.
std::string normalize_answer(const std::string& text);

/// How an open answer must agree with a right one.
enum class OpenMatch {
  kEqual,    // the same after normalisation
  kContains  // the right one's words stand in the answer, one after another
};

bool open_answer_matches(const std::string& answer, const std::string& right, OpenMatch match);

/// Which option a generated text chooses, by its text or, where the prompt had letters, by its
/// letter.
std::optional<int> chosen_option(const std::string& text, const std::vector<std::string>& choices,
                                 bool has_letters);

struct Verdict {
  double score = 0;  // 0 to 1
  int choice = -1;   // multiple choice: the option that was chosen, or -1
  bool right() const { return score >= 1; }
};

/// Of a generated text. Lists earn the share of elements that stand in their places.
Verdict judge_text(const SetQuestion& question, const std::string& text, OpenMatch match);

/// Of log-likelihoods, one per option: the highest is chosen, of equal ones the first.
/// REQUIRES: a multiple-choice question with as many options.
Verdict judge_likelihood(const SetQuestion& question, const std::vector<double>& log_likelihoods);

}  // namespace plateau::eval

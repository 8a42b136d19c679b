#include "eval/judge.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace plateau::eval {
namespace {

using Words = std::vector<std::string>;

constexpr std::array<std::string_view, 20> kUnits = {
    "zero",     "one",     "two",     "three",     "four",     "five",    "six",
    "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::array<std::string_view, 8> kTens = {"twenty", "thirty",  "forty",  "fifty",
                                                   "sixty",  "seventy", "eighty", "ninety"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_ascii_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
/// Letters, digits, and whatever is no ASCII.
bool is_word_char(char c) { return is_ascii_alnum(c) || static_cast<unsigned char>(c) >= 0x80; }

/// Words in lower case; punctuation parts them.
Words words_of(const std::string& text) {
  Words words;
  std::string word;
  const auto finish = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, {}));
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char before = i > 0 ? text[i - 1] : ' ';
    const char after = i + 1 < text.size() ? text[i + 1] : ' ';
    if (is_word_char(c)) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (c == '.' && is_digit(before) && is_digit(after)) {
      word += c;
    } else if (c == ',' && is_digit(before) && is_digit(after)) {
      continue;  // of thousands
    } else if (c == '-' && is_digit(after) && !is_word_char(before)) {
      finish();
      word += c;
    } else if (c == '\'') {
      continue;  // don't and dont are one word
    } else {
      finish();
    }
  }
  finish();
  return words;
}

/// The value of a number word, or -1.
int unit_value(const std::string& word) {
  const auto unit = std::find(kUnits.begin(), kUnits.end(), word);
  return unit == kUnits.end() ? -1 : static_cast<int>(unit - kUnits.begin());
}
int tens_value(const std::string& word) {
  const auto tens = std::find(kTens.begin(), kTens.end(), word);
  return tens == kTens.end() ? -1 : 20 + 10 * static_cast<int>(tens - kTens.begin());
}

Words with_digits(const Words& words) {
  Words result;
  for (size_t i = 0; i < words.size(); ++i) {
    const int tens = tens_value(words[i]);
    const int next = i + 1 < words.size() ? unit_value(words[i + 1]) : -1;
    if (tens > 0 && next >= 1 && next <= 9) {
      result.push_back(std::to_string(tens + next));
      ++i;
    } else if (tens > 0) {
      result.push_back(std::to_string(tens));
    } else if (const int unit = unit_value(words[i]); unit >= 0) {
      result.push_back(std::to_string(unit));
    } else {
      result.push_back(words[i]);
    }
  }
  return result;
}

Words normalized_words(const std::string& text) {
  Words words = with_digits(words_of(text));
  // An answer that is nothing but an article keeps it.
  const auto is_article = [](const std::string& word) {
    return word == "a" || word == "an" || word == "the";
  };
  if (std::all_of(words.begin(), words.end(), is_article)) return words;
  words.erase(std::remove_if(words.begin(), words.end(), is_article), words.end());
  return words;
}

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// Skips characters of `skipped` and white space.
size_t skip(const std::string& text, size_t at, std::string_view skipped) {
  while (at < text.size() &&
         (is_space(text[at]) || skipped.find(text[at]) != std::string_view::npos)) {
    ++at;
  }
  return at;
}

/// The option that stands at `at` as a capital letter that is a word of its own, perhaps in
/// brackets. A letter that could begin a sentence needs punctuation or the end behind it, as does
/// any with `needs_end`.
std::optional<int> letter_at(const std::string& text, size_t at, size_t n_choices, bool needs_end) {
  if (at < text.size() && text[at] == '(') ++at;
  if (at >= text.size()) return {};
  const char letter = text[at];
  if (letter < 'A' || letter >= static_cast<char>('A' + n_choices)) return {};
  const size_t behind = at + 1;
  if (behind < text.size() && (is_word_char(text[behind]) || text[behind] == '\'')) return {};
  const size_t next = skip(text, behind, "");
  const bool ends = next == text.size() || !is_word_char(text[next]) ||
                    text.substr(behind, next - behind).find('\n') != std::string::npos;
  const bool is_word = letter == 'A' || letter == 'I';
  if ((needs_end || is_word) && !ends) return {};
  return letter - 'A';
}

/// The letter alone at the beginning, behind a phrase such as "the answer is", or in brackets.
std::optional<int> option_by_letter(const std::string& text, size_t n_choices) {
  if (const auto alone = letter_at(text, skip(text, 0, "*"), n_choices, /*needs_end=*/true)) {
    return alone;
  }
  std::string lower = text;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string_view phrase : {"answer", "option", "choice"}) {
    for (size_t at = lower.find(phrase); at != std::string::npos; at = lower.find(phrase, at + 1)) {
      size_t behind = skip(text, at + phrase.size(), ":*");
      if (lower.compare(behind, 2, "is") == 0) behind = skip(text, behind + 2, ":*");
      if (const auto letter = letter_at(text, behind, n_choices, /*needs_end=*/false)) {
        return letter;
      }
    }
  }
  for (size_t at = text.find('('); at != std::string::npos; at = text.find('(', at + 1)) {
    const auto letter = letter_at(text, at, n_choices, /*needs_end=*/false);
    if (letter && at + 2 < text.size() && text[at + 2] == ')') return letter;
  }
  return {};
}

double list_score(const std::vector<std::string>& right, const std::string& text) {
  std::vector<std::string> found;
  const size_t begin = text.find('[');
  const size_t end = text.rfind(']');
  const std::string list = begin != std::string::npos && end != std::string::npos && end > begin
                               ? text.substr(begin, end - begin + 1)
                               : "[" + text + "]";
  const auto json = nlohmann::json::parse(list, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) return 0;
  for (const nlohmann::json& element : json) {
    found.push_back(element.is_string() ? element.get<std::string>() : element.dump());
  }
  int n_right = 0;
  for (size_t i = 0; i < std::min(found.size(), right.size()); ++i) {
    n_right += normalize_answer(found[i]) == normalize_answer(right[i]) ? 1 : 0;
  }
  return static_cast<double>(n_right) / static_cast<double>(right.size());
}

}  // namespace

std::string normalize_answer(const std::string& text) {
  std::string result;
  for (const std::string& word : normalized_words(text)) {
    result += (result.empty() ? "" : " ") + word;
  }
  return result;
}

bool open_answer_matches(const std::string& answer, const std::string& right, OpenMatch match) {
  const Words want = normalized_words(right);
  const Words got = normalized_words(answer);
  if (match == OpenMatch::kEqual || want.empty()) return want == got;
  return std::search(got.begin(), got.end(), want.begin(), want.end()) != got.end();
}

std::optional<int> chosen_option(const std::string& text, const std::vector<std::string>& choices,
                                 bool has_letters) {
  for (size_t i = 0; i < choices.size(); ++i) {
    if (!choices[i].empty() && open_answer_matches(text, choices[i], OpenMatch::kEqual)) {
      return static_cast<int>(i);
    }
  }
  if (has_letters) {
    if (const auto letter = option_by_letter(text, choices.size())) return letter;
  }
  std::optional<int> only;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i].empty() || !open_answer_matches(text, choices[i], OpenMatch::kContains)) {
      continue;
    }
    if (only) return {};  // two options are named: no choice
    only = static_cast<int>(i);
  }
  return only;
}

Verdict judge_text(const SetQuestion& question, const std::string& text, OpenMatch match) {
  if (question.is_multiple_choice()) {
    const int choice = chosen_option(text, question.choices, question.has_letters).value_or(-1);
    return {.score = choice == question.right_choice ? 1.0 : 0.0, .choice = choice};
  }
  if (question.is_list) return {.score = list_score(question.answers, text)};
  const bool right = std::any_of(
      question.answers.begin(), question.answers.end(),
      [&](const std::string& answer) { return open_answer_matches(text, answer, match); });
  return {.score = right ? 1.0 : 0.0};
}

Verdict judge_likelihood(const SetQuestion& question, const std::vector<double>& log_likelihoods) {
  PLATEAU_CHECK(question.is_multiple_choice() && log_likelihoods.size() == question.choices.size());
  const auto best = std::max_element(log_likelihoods.begin(), log_likelihoods.end());
  const int choice = static_cast<int>(best - log_likelihoods.begin());
  return {.score = choice == question.right_choice ? 1.0 : 0.0, .choice = choice};
}

}  // namespace plateau::eval

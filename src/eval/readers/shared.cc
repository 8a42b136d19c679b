#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>

#include "base/check.h"
#include "eval/readers/readers.h"

namespace plateau::eval {
namespace {

constexpr size_t kMaxChoices = 26;

/// The option that a text such as "B", "(B)", "B." or "B) red" names, if it does.
std::optional<int> letter_index(const std::string& text) {
  const size_t at = text.starts_with('(') ? 1 : 0;
  if (text.size() <= at || std::isupper(static_cast<unsigned char>(text[at])) == 0) return {};
  const bool ends = text.size() == at + 1;
  if (!ends && (at == 1 ? text[at + 1] != ')' : text[at + 1] != '.' && text[at + 1] != ')')) {
    return {};
  }
  return text[at] - 'A';
}

/// What stands behind the letter. REQUIRES: letter_index(option).
std::string without_letter(const std::string& option) {
  const size_t behind = std::min<size_t>(option.size(), option.starts_with('(') ? 3 : 2);
  const size_t text = option.find_first_not_of(" \t", behind);
  return text == std::string::npos ? "" : option.substr(text);
}

}  // namespace

std::string media_path(const RecordContext& context, const std::string& path) {
  return (std::filesystem::path(context.media_root) / path).lexically_normal().string();
}

std::string option_letter(int index) {
  PLATEAU_CHECK(index >= 0 && index < static_cast<int>(kMaxChoices));
  return std::string(1, static_cast<char>('A' + index));
}

std::string with_options(const std::string& question, const std::vector<std::string>& choices) {
  std::string text = question;
  for (size_t i = 0; i < choices.size(); ++i) {
    text += fmt::format("\n{}. {}", option_letter(static_cast<int>(i)), choices[i]);
  }
  return text + "\n" + kAnswerWithLetter;
}

void set_choices(const JsonRecord& record, const std::string& answer_field,
                 std::vector<std::string> choices, SetQuestion& question) {
  if (choices.size() < 2 || choices.size() > kMaxChoices) {
    record.fail("choices", fmt::format("2 to {} options", kMaxChoices),
                fmt::format("{}", choices.size()));
  }
  std::optional<int64_t> right = record.whole_number(answer_field);
  if (!right) {
    const std::string answer = record.text({answer_field});
    // An option's own text comes first: an option may read "A" or "B. Franklin".
    const auto same = std::find(choices.begin(), choices.end(), answer);
    if (same != choices.end()) {
      right = same - choices.begin();
    } else if (const auto index = letter_index(answer)) {
      right = *index;
    }
  }
  if (!right || *right < 0 || *right >= static_cast<int64_t>(choices.size())) {
    record.fail(answer_field,
                fmt::format("the letter, index or text of one of {} options", choices.size()));
  }
  question.right_choice = static_cast<int>(*right);
  question.choices = std::move(choices);
  question.has_letters = true;
}

std::vector<std::string> listed_options(const std::string& text) {
  std::vector<std::string> options;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const auto index = letter_index(line);
    if (!index || line.size() < 3 || *index != static_cast<int>(options.size())) continue;
    options.push_back(without_letter(line));
  }
  return options;
}

std::vector<std::string> without_letters(std::vector<std::string> options) {
  for (size_t i = 0; i < options.size(); ++i) {
    const auto index = letter_index(options[i]);
    if (!index || *index != static_cast<int>(i)) return options;
  }
  for (std::string& option : options) option = without_letter(option);
  return options;
}

}  // namespace plateau::eval

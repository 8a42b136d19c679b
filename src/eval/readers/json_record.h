// One JSON object of a question file, read field by field; every complaint says where it is, what
// was expected and what was found.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace plateau::eval {

/// What a record was read from, for messages: "set.jsonl:12" or "1_plotQA.json item 3".
class JsonRecord {
 public:
  /// Errors: kCorrupt when `json` is no object.
  JsonRecord(nlohmann::json json, std::string place);

  const std::string& place() const { return place_; }
  /// Present and not null.
  bool has(const std::string& field) const;
  /// The raw value; null when it is absent.
  const nlohmann::json& at(const std::string& field) const;

  // All of these throw kCorrupt. A field that may be named differently takes its names in order of
  // preference; the first that is there counts.
  std::string text(const std::vector<std::string>& names) const;
  std::string text_or(const std::vector<std::string>& names, const std::string& otherwise) const;
  /// A text, or a number as it was written.
  std::optional<std::string> text_or_number(const std::vector<std::string>& names) const;
  std::vector<std::string> texts(const std::vector<std::string>& names) const;
  /// A finite number.
  double number(const std::string& field) const;
  std::optional<int64_t> whole_number(const std::string& field) const;
  bool truth(const std::string& field) const;
  /// Finite numbers.
  std::vector<double> numbers(const std::string& field) const;
  /// A nested object. Its place names the field.
  JsonRecord object(const std::string& field) const;
  /// A list of objects; empty where the field is absent.
  std::vector<JsonRecord> objects(const std::string& field) const;

  [[noreturn]] void fail(const std::string& field, const std::string& expected) const;
  [[noreturn]] void fail(const std::string& field, const std::string& expected,
                         const std::string& found) const;

 private:
  const std::string* first_present(const std::vector<std::string>& names) const;

  nlohmann::json json_;
  std::string place_;
};

/// A short description of a JSON value for messages: "number 5", "text \"a\"", "nothing".
std::string describe(const nlohmann::json& value);

/// The objects of a file that holds one JSON object per line (blank lines are skipped) or one array
/// of objects. `text` is the file's content, `name` stands in messages.
/// Errors: kCorrupt.
std::vector<JsonRecord> parse_records(const std::string& text, const std::string& name);

}  // namespace plateau::eval

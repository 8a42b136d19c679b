// Tested by tests/eval/dataset_test.cc.
#include "eval/readers/json_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace plateau::eval {
namespace {

using Json = nlohmann::json;

constexpr size_t kShown = 60;  // bytes of a value that messages repeat

std::string names_of(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, " or "));
}

int line_of(const std::string& text, size_t byte) {
  const size_t end = std::min(byte, text.size());
  return 1 + static_cast<int>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
}

bool is_array_file(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '[';
}

std::vector<JsonRecord> parse_array(const std::string& text, const std::string& name) {
  Json array;
  try {
    array = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw_error(ErrorCode::kCorrupt, "[{}:{}] expected JSON, got a fault at byte {}", name,
                line_of(text, error.byte), error.byte);
  }
  std::vector<JsonRecord> records;
  for (size_t i = 0; i < array.size(); ++i) {
    records.emplace_back(std::move(array[i]), fmt::format("{} item {}", name, i + 1));
  }
  return records;
}

std::vector<JsonRecord> parse_lines(const std::string& text, const std::string& name) {
  std::vector<JsonRecord> records;
  size_t begin = 0;
  for (int line = 1; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (part.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string place = fmt::format("{}:{}", name, line);
    Json json = Json::parse(part, /*cb=*/nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) {
      throw_error(ErrorCode::kCorrupt, "[{}] expected one JSON object per line, got '{}'", place,
                  part.substr(0, kShown));
    }
    records.emplace_back(std::move(json), place);
  }
  return records;
}

}  // namespace

std::string describe(const Json& value) {
  if (value.is_null()) return "nothing";
  const char* type = value.is_string()   ? "text"
                     : value.is_number() ? "number"
                     : value.is_array()  ? "list"
                     : value.is_object() ? "object"
                                         : "truth value";
  std::string shown = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (shown.size() > kShown) shown = shown.substr(0, kShown) + "...";
  return fmt::format("{} {}", type, shown);
}

JsonRecord::JsonRecord(Json json, std::string place)
    : json_(std::move(json)), place_(std::move(place)) {
  if (!json_.is_object()) {
    throw_error(ErrorCode::kCorrupt, "[{}] expected a JSON object, got {}", place_,
                describe(json_));
  }
}

bool JsonRecord::has(const std::string& field) const { return !at(field).is_null(); }

const Json& JsonRecord::at(const std::string& field) const {
  static const Json kNothing;
  const auto found = json_.find(field);
  return found == json_.end() ? kNothing : *found;
}

const std::string* JsonRecord::first_present(const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    if (has(name)) return &name;
  }
  return nullptr;
}

void JsonRecord::fail(const std::string& field, const std::string& expected) const {
  fail(field, expected, describe(at(field)));
}

void JsonRecord::fail(const std::string& field, const std::string& expected,
                      const std::string& found) const {
  throw_error(ErrorCode::kCorrupt, "[{}] field {}: expected {}, got {}", place_, field, expected,
              found);
}

std::string JsonRecord::text(const std::vector<std::string>& names) const {
  const std::string* name = first_present(names);
  if (name == nullptr) fail(names_of(names), "text", "nothing");
  if (!at(*name).is_string()) fail(*name, "text");
  return at(*name).get<std::string>();
}

std::string JsonRecord::text_or(const std::vector<std::string>& names,
                                const std::string& otherwise) const {
  return first_present(names) == nullptr ? otherwise : text(names);
}

std::optional<std::string> JsonRecord::text_or_number(const std::vector<std::string>& names) const {
  const std::string* name = first_present(names);
  if (name == nullptr) return std::nullopt;
  const Json& value = at(*name);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  fail(*name, "text or a number");
}

std::vector<std::string> JsonRecord::texts(const std::vector<std::string>& names) const {
  const std::string* name = first_present(names);
  if (name == nullptr) fail(names_of(names), "a list of texts", "nothing");
  const Json& value = at(*name);
  if (!value.is_array()) fail(*name, "a list of texts");
  std::vector<std::string> result;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i].is_string()) {
      result.push_back(value[i].get<std::string>());
    } else if (value[i].is_number()) {
      result.push_back(value[i].dump());
    } else {
      fail(fmt::format("{}[{}]", *name, i), "text", describe(value[i]));
    }
  }
  return result;
}

double JsonRecord::number(const std::string& field) const {
  const Json& value = at(field);
  if (!value.is_number() || !std::isfinite(value.get<double>())) fail(field, "a number");
  return value.get<double>();
}

std::optional<int64_t> JsonRecord::whole_number(const std::string& field) const {
  if (!at(field).is_number_integer()) return std::nullopt;
  return at(field).get<int64_t>();
}

bool JsonRecord::truth(const std::string& field) const {
  if (!at(field).is_boolean()) fail(field, "true or false");
  return at(field).get<bool>();
}

std::vector<double> JsonRecord::numbers(const std::string& field) const {
  const Json& value = at(field);
  const auto is_finite = [](const Json& number) {
    return number.is_number() && std::isfinite(number.get<double>());
  };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_finite)) {
    fail(field, "a list of numbers");
  }
  return value.get<std::vector<double>>();
}

JsonRecord JsonRecord::object(const std::string& field) const {
  if (!at(field).is_object()) fail(field, "an object");
  return {at(field), fmt::format("{} {}", place_, field)};
}

std::vector<JsonRecord> JsonRecord::objects(const std::string& field) const {
  std::vector<JsonRecord> result;
  if (!has(field)) return result;
  const Json& value = at(field);
  if (!value.is_array()) fail(field, "a list of objects");
  for (size_t i = 0; i < value.size(); ++i) {
    result.emplace_back(value[i], fmt::format("{} {}[{}]", place_, field, i));
  }
  return result;
}

std::vector<JsonRecord> parse_records(const std::string& text, const std::string& name) {
  return is_array_file(text) ? parse_array(text, name) : parse_lines(text, name);
}

}  // namespace plateau::eval

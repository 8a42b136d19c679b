#include "report/reader.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/statistics.h"

namespace plateau::report {
namespace {

using nlohmann::json;

/// Field access that says file, line and field when something is wrong.
class Line {
 public:
  Line(const json& object, std::string place) : object_(object), place_(std::move(place)) {}

  const std::string& place() const { return place_; }
  bool has(const char* name) const { return object_.contains(name) && !object_[name].is_null(); }

  Line object(const char* name) const {
    const json& value = find(name, "an object");
    if (!value.is_object()) wrong(name, "an object", value);
    return {value, place_};
  }
  std::string text(const char* name) const {
    const json& value = find(name, "a text");
    if (!value.is_string()) wrong(name, "a text", value);
    return value.get<std::string>();
  }
  double number(const char* name) const {
    const json& value = find(name, "a number of at least 0");
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0) {
      wrong(name, "a number of at least 0", value);
    }
    return value.get<double>();
  }
  int64_t count(const char* name) const {
    const double value = number(name);
    if (value != std::floor(value) || value > 9e15) {
      wrong(name, "a whole number", object_[name]);
    }
    return static_cast<int64_t>(value);
  }
  bool flag(const char* name) const {
    const json& value = find(name, "true or false");
    if (!value.is_boolean()) wrong(name, "true or false", value);
    return value.get<bool>();
  }
  /// A number, or a word that stands for none.
  std::optional<int64_t> count_or(const char* name, const char* word) const {
    const json& value = find(name, "a number or a word");
    if (value.is_string() && value.get<std::string>() == word) return std::nullopt;
    return count(name);
  }
  std::string text_or_number(const char* name) const {
    const json& value = find(name, "a number or a text");
    return value.is_string() ? value.get<std::string>() : std::to_string(count(name));
  }
  Spread spread(const char* name) const {
    const Line value = object(name);
    return {value.number("median"), value.number("min"), value.number("max")};
  }
  std::optional<Spread> optional_spread(const char* name) const {
    return has(name) ? std::optional(spread(name)) : std::nullopt;
  }

 private:
  const json& find(const char* name, const char* expected) const {
    if (!object_.contains(name)) {
      throw_error(ErrorCode::kCorrupt, "[{}] expected field \"{}\", {}; found none", place_, name,
                  expected);
    }
    return object_[name];
  }
  [[noreturn]] void wrong(const char* name, const char* expected, const json& value) const {
    throw_error(ErrorCode::kCorrupt, "[{}] expected field \"{}\" to be {}, got {}", place_, name,
                expected, value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 60));
  }

  const json& object_;
  std::string place_;
};

/// The answers of one setting in one file, by question: of several, the last counts.
struct Answers {
  EvalSetting setting;
  struct Answer {
    double score = 0, visual_tokens = 0, kept_tokens = 0, prefill_ms = 0;
    int64_t kv_bytes = 0, peak_anon_bytes = 0;
    bool has_needle = false, is_error = false;
    double any_share = 0, token_share = 0;
  };
  std::map<std::string, Answer> by_id;
};

EvalSetting sum_up(const Answers& answers) {
  EvalSetting s = answers.setting;
  std::vector<double> scores;
  std::vector<double> prefills;
  for (const auto& [id, a] : answers.by_id) {
    if (a.is_error) {
      ++s.n_errors;
      continue;
    }
    scores.push_back(a.score);
    prefills.push_back(a.prefill_ms);
    s.visual_tokens += a.visual_tokens;
    s.kept_tokens += a.kept_tokens;
    s.kv_bytes = std::max(s.kv_bytes, a.kv_bytes);
    s.peak_anon_bytes = std::max(s.peak_anon_bytes, a.peak_anon_bytes);
    if (a.has_needle) {
      ++s.n_needle;
      s.any_share += a.any_share;
      s.token_share += a.token_share;
    }
  }
  s.n = static_cast<int64_t>(scores.size());
  if (s.n == 0) return s;
  const auto n = static_cast<double>(s.n);
  s.visual_tokens /= n;
  s.kept_tokens /= n;
  const MeanWithError accuracy = mean_with_error(scores);
  s.accuracy = accuracy.mean;
  s.standard_error = accuracy.standard_error;
  s.prefill_ms = median(std::move(prefills));
  if (s.n_needle > 0) {
    s.any_share /= static_cast<double>(s.n_needle);
    s.token_share /= static_cast<double>(s.n_needle);
  }
  return s;
}

class FileReader {
 public:
  FileReader(const std::string& path, Records& records) : path_(path), records_(records) {}

  void read() {
    std::error_code ignored;
    if (std::filesystem::is_fifo(path_, ignored)) {
      throw_error(ErrorCode::kUnsupported, "[{}] expected a file, got a named pipe", path_);
    }
    std::ifstream file(path_);
    if (!file || file.peek() == std::ifstream::traits_type::eof()) {
      const bool is_there = static_cast<bool>(std::ifstream(path_));
      throw_error(is_there ? ErrorCode::kCorrupt : ErrorCode::kNotFound, "[{}] {}", path_,
                  is_there ? "expected result lines, the file is empty or a folder"
                           : "cannot be opened for reading");
    }
    std::string text;
    for (int64_t number = 1; std::getline(file, text); ++number) {
      if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
      read_line(text, fmt::format("{}:{}", path_, number));
    }
    if (file.bad()) throw_error(ErrorCode::kNotFound, "[{}] cannot be read", path_);
    for (const std::string& name : setting_order_) {
      records_.eval.push_back(sum_up(answers_.at(name)));
    }
    if (n_results_ == 0) {
      throw_error(ErrorCode::kCorrupt, "[{}] expected results of bench or eval, found none", path_);
    }
  }

 private:
  void read_line(const std::string& text, const std::string& place) {
    const json object = json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
    if (object.is_discarded() || !object.is_object()) {
      throw_error(ErrorCode::kCorrupt, "[{}] expected a JSON object on one line, got {}", place,
                  text.substr(0, 60));
    }
    const Line line(object, place);
    const std::string type = line.text("type");
    if (type == "fingerprint") {
      read_fingerprint(line);
    } else if (type == "bench") {
      read_bench(line);
    } else if (type == "header") {
      read_header(line);
    } else if (type == "result" || type == "error") {
      read_answer(line, type == "error");
    } else if (type != "summary" && type != "correlation") {  // these are worked out anew
      throw_error(
          ErrorCode::kCorrupt,
          "[{}] expected a record of type fingerprint, bench, header, result, error, summary "
          "or correlation, got \"{}\"",
          place, type);
    }
  }

  void read_fingerprint(const Line& line) {
    const Line model = line.object("model");
    Run& run = runs_[line.text("run")];
    run.source = records_.sources.size();
    run.model = model.text("file");
    run.machine = fmt::format("{}, {} cores", line.text("cpu"), line.count("cores"));
    std::string shape =
        fmt::format("{}: {}, {} layers of width {}, {}", run.model, model.text("arch"),
                    model.count("n_layer"), model.count("n_embd"), model.text("weight_type"));
    if (model.count("n_layer_published") > model.count("n_layer")) {
      shape += fmt::format(" (cut from {} layers)", model.count("n_layer_published"));
    }
    records_.sources.push_back(
        {.file = path_,
         .command = line.text("command"),
         .machine = fmt::format("{}, {:.0f} GiB, {}", run.machine,
                                line.number("ram_bytes") / (1 << 30), line.text("kernel")),
         .build = fmt::format("{} {}, commit {}, llama.cpp {}", line.text("compiler"),
                              line.text("build_type"), line.text("commit"), line.text("llama_cpp")),
         .model = shape + ", " + model.text("metadata_hash"),
         .date = line.text("date")});
  }

  void read_bench(const Line& line) {
    const std::string name = line.text("run");
    const auto run = runs_.find(name);
    if (run == runs_.end()) {
      throw_error(ErrorCode::kCorrupt,
                  "[{}] expected a fingerprint line of run \"{}\" before it, found none",
                  line.place(), name);
    }
    ++n_results_;
    BenchRecord r;
    r.source = run->second.source;
    r.model = run->second.model;
    const int64_t n_threads = line.count("threads");
    r.machine = fmt::format("{}, {} {}", run->second.machine, n_threads,
                            n_threads == 1 ? "thread" : "threads");
    r.input = line.text("input");
    r.budget = line.count_or("kv_budget", "full");
    r.policy = line.text("policy");
    r.block = line.text_or_number("block");
    r.bulk = line.flag("bulk");
    r.strict = line.flag("strict");
    r.cache_types = line.text("cache_type_k") + "/" + line.text("cache_type_v");
    if (line.has("error")) {
      const std::string size = line.has("n_input") ? std::to_string(line.count("n_input")) : "";
      records_.failures.push_back(
          {r.source,
           fmt::format("{}, {} {}, {}, budget {}, block {}", r.model, size, r.input, r.policy,
                       r.budget ? std::to_string(*r.budget) : "full", r.block),
           line.text("error")});
      return;
    }
    r.isolated = line.flag("isolated");
    r.visual_tokens = line.count("visual_tokens");
    r.ttft_ms = line.spread("ttft_ms");
    r.encode_ms = line.spread("encode_ms").median;
    r.prefill_ms = line.spread("prefill_ms").median;
    r.score_ms = line.spread("score_ms").median;
    r.select_ms = line.spread("select_ms").median;
    r.compact_ms = line.spread("compact_ms").median;
    r.decode_tok_s = line.optional_spread("decode_tok_s");
    r.kv_bytes = line.count("kv_bytes");
    r.kv_bytes_planned = line.count("kv_bytes_planned");
    r.compute_bytes = line.count("compute_bytes");
    r.peak_anon_bytes = line.count("peak_anon_bytes");
    if (line.has("peak_anon_bytes_planned")) {
      r.peak_anon_bytes_planned = line.count("peak_anon_bytes_planned");
    }
    if (line.has("profile")) {
      const Line p = line.object("profile");
      r.profile = {p.number("linear_ms"), p.number("attention_ms"), p.number("signals_ms"),
                   p.number("other_ms"), p.number("prefill_ms")};
    }
    if (line.has("llama_cpp")) {
      const Line llama = line.object("llama_cpp");
      const Line speedup = line.object("speedup");
      r.llama = {llama.spread("ttft_ms"), llama.optional_spread("decode_tok_s"),
                 speedup.spread("ttft"), speedup.optional_spread("decode")};
    }
    records_.bench.push_back(std::move(r));
  }

  void read_header(const Line& line) {
    set_ = fmt::format("{}, {}", line.text("set"), line.text("model"));
    eval_source_ = records_.sources.size();
    has_header_ = true;
    records_.sources.push_back({.file = path_,
                                .command = line.has("command") ? line.text("command") : "",
                                .machine = line.has("machine") ? line.text("machine") : "",
                                .build = line.text("schema"),
                                .model = line.text("model"),
                                .date = line.has("date") ? line.text("date") : ""});
  }

  void read_answer(const Line& line, bool is_error) {
    if (!has_header_) {
      throw_error(ErrorCode::kCorrupt, "[{}] expected a header line before it, found none",
                  line.place());
    }
    ++n_results_;
    const std::string name = line.text("setting");
    if (!answers_.contains(name)) {
      setting_order_.push_back(name);
      EvalSetting& s = answers_[name].setting;
      s.source = eval_source_;
      s.set = set_;
      s.name = name;
      s.policy = line.text("policy");
      s.budget = line.count_or("budget", "full");
      if (line.has("resize")) s.resize = line.count("resize");
      s.block = line.text_or_number("block");
      s.bulk = line.flag("bulk");
      s.strict = line.flag("strict");
    }
    Answers::Answer& a = answers_[name].by_id[line.text("id")];
    a = {};
    a.is_error = is_error;
    if (is_error) return;
    a.score = line.number("score");
    a.visual_tokens = line.number("visual_tokens");
    a.kept_tokens = line.number("kept_tokens");
    a.prefill_ms = line.number("prefill_ms");
    a.kv_bytes = line.count("kv_bytes");
    a.peak_anon_bytes = line.count("peak_anon_bytes");
    if (line.has("needle")) {
      a.has_needle = true;
      a.any_share = line.object("needle").number("any_share");
      a.token_share = line.object("needle").number("token_share");
    }
  }

  struct Run {
    size_t source = 0;
    std::string model;
    std::string machine;
  };

  const std::string& path_;
  Records& records_;
  std::map<std::string, Run> runs_;
  bool has_header_ = false;
  std::string set_;
  size_t eval_source_ = 0;
  std::map<std::string, Answers> answers_;
  std::vector<std::string> setting_order_;
  int64_t n_results_ = 0;
};

}  // namespace

Records read_records(const std::vector<std::string>& paths) {
  Records records;
  for (const std::string& path : paths) FileReader(path, records).read();
  return records;
}

}  // namespace plateau::report

// The results of an evaluation as JSON lines: a header, a line per (question, setting) as soon as
// it is known, and summaries at the end. A file that was left unfinished is gone on with.
// Tested by tests/eval/run_file_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/run_record.h"

namespace plateau::eval {

class RunFile {
 public:
  /// What a record contradicts, in words; empty: nothing.
  using Check = std::function<std::string(const ResultRecord&)>;

  /// Opens or makes the file and locks it. `header` must have the objects "identity", which must
  /// agree with the file's, and may say more. Summaries at its end are dropped, since they will be
  /// written anew; so is a last line without a line feed. Those in front of a result stay where
  /// they are: no finished line is ever moved. `check`, unless empty, is asked about every record.
  /// Errors: kInvalidArgument (another identity, not a results file, in use), kNotFound (cannot be
  /// read), kCorrupt (a line; the message has its number), kUnavailable (cannot be opened or
  /// written).
  RunFile(const std::string& path, const nlohmann::ordered_json& header, const Check& check = {});
  ~RunFile();
  RunFile(const RunFile&) = delete;
  RunFile& operator=(const RunFile&) = delete;

  /// What the file already had, in its order; of several lines for one (question, setting), the
  /// last.
  const std::vector<ResultRecord>& found() const { return found_; }
  /// A torn last line was dropped.
  bool was_repaired() const { return was_repaired_; }

  /// Writes the line at once. What cannot be written whole is taken back.
  /// Errors: kUnavailable; the message says how many lines are safe.
  void append(const std::string& line);

 private:
  void read_existing(const std::string& text, const nlohmann::ordered_json& header,
                     const Check& check);

  std::string path_;
  int fd_ = -1;
  bool is_regular_ = false;
  int64_t size_ = 0;     // bytes of whole lines
  int64_t n_lines_ = 0;  // results and errors
  bool was_repaired_ = false;
  std::vector<ResultRecord> found_;
};

}  // namespace plateau::eval

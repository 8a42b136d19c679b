// --trace-json: what each block left in the cache, written as it happens to FILE.part, which
// becomes FILE when the document is whole.
//   {"blocks": [{"block": 0, "tokens_done": 2048, "positions": [[t, h, w], ...],
//                "layers": [{"layer": 0, "heads": [[tokens, ascending], ...]}, ...]}, ...]}
// Tokens are indices into the prompt. "positions" are the rotary positions of the block's own
// tokens, in order: with M-RoPE, tokens of one picture share t; otherwise all three are the index.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "plateau/request.h"

namespace plateau::cli {

class TraceJson {
 public:
  /// Errors: kUnavailable when the file cannot be opened for writing.
  explicit TraceJson(const std::string& path);
  ~TraceJson();
  TraceJson(const TraceJson&) = delete;
  TraceJson& operator=(const TraceJson&) = delete;

  /// Errors: kUnavailable (disc full).
  void add(const BlockTrace& trace);
  /// Closes the JSON document. Errors: kUnavailable (disc full).
  void finish();

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void write(std::string_view text);
  [[noreturn]] void fail() const;  // by errno

  std::string path_;
  std::string part_path_;  // path_ itself where that is no regular file
  std::unique_ptr<std::FILE, Closer> file_;
  bool first_ = true;
};

}  // namespace plateau::cli

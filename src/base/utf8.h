// Holds back the bytes of a character that a token border has cut.
// Tested by tests/base/utf8_test.cc.
#pragma once

#include <string>
#include <string_view>

namespace plateau {

class Utf8Stream {
 public:
  /// Adds bytes; returns the longest prefix of what is held that does not end inside a character.
  /// Invalid bytes come out as U+FFFD, so that the output is always valid UTF-8.
  std::string push(std::string_view bytes);

  /// What is still held, an incomplete character, as U+FFFD.
  std::string flush();

 private:
  std::string held_;
};

bool is_valid_utf8(std::string_view text);

}  // namespace plateau

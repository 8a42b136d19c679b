#include "base/utf8.h"

#include <cstddef>

namespace plateau {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Length of the character that starts with `lead`; 0 when no character does.
size_t character_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

bool is_valid_second(unsigned char lead, unsigned char second) {
  if ((second & 0xC0) != 0x80) return false;
  if (lead == 0xE0) return second >= 0xA0;  // no overlong forms
  if (lead == 0xED) return second < 0xA0;   // no surrogates
  if (lead == 0xF0) return second >= 0x90;
  if (lead == 0xF4) return second < 0x90;
  return true;
}

/// Number of bytes of the character at `text` that are right so far.
size_t valid_prefix(std::string_view text, size_t length) {
  size_t n = 1;
  while (n < length && n < text.size()) {
    const auto byte = static_cast<unsigned char>(text[n]);
    const bool ok =
        n == 1 ? is_valid_second(static_cast<unsigned char>(text[0]), byte) : (byte & 0xC0) == 0x80;
    if (!ok) break;
    ++n;
  }
  return n;
}

}  // namespace

std::string Utf8Stream::push(std::string_view bytes) {
  held_ += bytes;
  std::string out;
  std::string_view rest = held_;
  while (!rest.empty()) {
    const size_t length = character_length(static_cast<unsigned char>(rest[0]));
    if (length == 0) {
      out += kReplacement;
      rest.remove_prefix(1);
      continue;
    }
    const size_t n = valid_prefix(rest, length);
    if (n == rest.size() && n < length) break;  // cut by the border
    out += n == length ? rest.substr(0, n) : kReplacement;
    rest.remove_prefix(n);
  }
  held_ = std::string(rest);
  return out;
}

std::string Utf8Stream::flush() {
  const bool cut = !held_.empty();
  held_.clear();
  return cut ? std::string(kReplacement) : std::string();
}

bool is_valid_utf8(std::string_view text) {
  Utf8Stream stream;
  const std::string whole = stream.push(text);
  return whole == text && stream.flush().empty();
}

}  // namespace plateau

#include "base/utf8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace plateau {
namespace {

const std::string kBad = "\xEF\xBF\xBD";  // U+FFFD

std::string all_at_once(std::string_view bytes) {
  Utf8Stream stream;
  std::string out = stream.push(bytes);
  out += stream.flush();
  return out;
}

std::string byte_by_byte(std::string_view bytes) {
  Utf8Stream stream;
  std::string out;
  for (const char byte : bytes) out += stream.push({&byte, 1});
  out += stream.flush();
  return out;
}

/// By decoding to a code point, unlike the code under test.
bool is_valid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if ((lead >= 0x80 && lead < 0xC0) || lead > 0xF7 || i + length > text.size()) return false;
    uint32_t code = length == 1 ? lead : lead & (0x7FU >> length);
    for (size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if (next < 0x80 || next > 0xBF) return false;
      code = (code << 6) | (next & 0x3FU);
    }
    constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kSmallest[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      return false;
    }
    i += length;
  }
  return true;
}

std::string encode(uint32_t code) {
  const auto byte = [](uint32_t value) { return static_cast<char>(value); };
  const auto tail = [&](int shift) { return byte(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0 | (code >> 6)), tail(0)};
  if (code < 0x10000) return {byte(0xE0 | (code >> 12)), tail(6), tail(0)};
  return {byte(0xF0 | (code >> 18)), tail(12), tail(6), tail(0)};
}

TEST(Utf8Stream, HoldsACutCharacterBackUntilItIsWhole) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xE2"), "a");
  EXPECT_EQ(stream.push("\x82"), "");
  EXPECT_EQ(stream.push("\xAC"
                        "b"),
            "\xE2\x82\xAC"
            "b");
  EXPECT_EQ(stream.flush(), "");
}

TEST(Utf8Stream, FlushReplacesAnIncompleteCharacterOnce) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("x\xF0\x9F\x98"), "x");
  EXPECT_EQ(stream.flush(), kBad);
  EXPECT_EQ(stream.flush(), "");
  EXPECT_EQ(stream.push("\x80"), kBad) << "flush forgets what was held";
}

TEST(Utf8Stream, EveryCodePointPassesUnchangedInPieces) {
  for (uint32_t code = 0; code <= 0x10FFFF; code += code < 0x3000 ? 1 : 61) {
    if (code >= 0xD800 && code < 0xE000) continue;
    const std::string text = encode(code);
    ASSERT_EQ(byte_by_byte(text), text) << code;
  }
  for (const uint32_t code :
       {0x7FU, 0x80U, 0x7FFU, 0x800U, 0xD7FFU, 0xE000U, 0xFFFDU, 0xFFFFU, 0x10000U, 0x10FFFFU}) {
    EXPECT_EQ(all_at_once(encode(code)), encode(code)) << code;
  }
}

struct Damage {
  const char* what;
  std::string bytes;
  std::string expected;
};

// One U+FFFD for each longest right beginning of a character, as Unicode recommends.
TEST(Utf8Stream, InvalidBytesBecomeTheReplacementCharacter) {
  const std::vector<Damage> cases = {
      {"a lone continuation", "a\x80z", "a" + kBad + "z"},
      {"an impossible byte", "\xFF\xFE", kBad + kBad},
      {"overlong two bytes", "\xC0\xAF", kBad + kBad},
      {"overlong two bytes, C1", "\xC1\xBF", kBad + kBad},
      {"overlong three bytes", "\xE0\x80\xAF", kBad + kBad + kBad},
      {"overlong four bytes", "\xF0\x80\x80\xAF", kBad + kBad + kBad + kBad},
      {"a high surrogate", "\xED\xA0\x80", kBad + kBad + kBad},
      {"a low surrogate", "\xED\xBF\xBF", kBad + kBad + kBad},
      {"above U+10FFFF", "\xF4\x90\x80\x80", kBad + kBad + kBad + kBad},
      {"a lead above F4", "\xF5\x80\x80\x80", kBad + kBad + kBad + kBad},
      {"cut by a letter",
       "\xE2\x82"
       "A",
       kBad + "A"},
      {"cut by a lead", "\xE2\xC3\xA9", kBad + "\xC3\xA9"},
      {"cut in the fourth byte",
       "\xF0\x9F\x98"
       "A",
       kBad + "A"},
  };
  for (const Damage& damage : cases) {
    EXPECT_EQ(all_at_once(damage.bytes), damage.expected) << damage.what;
    EXPECT_EQ(byte_by_byte(damage.bytes), damage.expected) << damage.what;
  }
}

TEST(Utf8Stream, ZeroBytesAndEmptyPiecesAreOrdinary) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push(""), "");
  EXPECT_EQ(stream.push(std::string_view("\0a", 2)), std::string("\0a", 2));
}

TEST(Utf8Stream, AnyBytesInAnyPiecesGiveTheSameValidText) {
  std::mt19937 random(1);
  // Mostly bytes that matter to the decoder.
  const std::string interesting =
      "a\x7F\x80\x8F\x90\x9F\xA0\xBF\xC1\xC2\xDF\xE0\xED\xEF\xF0\xF4\xF5";
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random() % 12, '\0');
    for (char& byte : bytes) byte = interesting[random() % interesting.size()];
    Utf8Stream stream;
    std::string pieces;
    for (size_t i = 0; i < bytes.size();) {
      const size_t n = std::min<size_t>(1 + random() % 4, bytes.size() - i);
      const std::string piece = stream.push(std::string_view(bytes).substr(i, n));
      ASSERT_TRUE(is_valid_utf8(piece));
      pieces += piece;
      i += n;
    }
    pieces += stream.flush();
    ASSERT_EQ(pieces, all_at_once(bytes));
  }
}

TEST(IsValidUtf8, TellsTextFromOtherBytes) {
  for (const char* text :
       {"", "abc", "\xc3\xa4", "\xe2\x82\xac", "\xf4\x8f\xbf\xbf", "\xef\xbf\xbd"}) {
    EXPECT_TRUE(is_valid_utf8(text)) << text;
  }
  for (const char* text :
       {"\xff", "\xc3", "a\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\xaf", "\x80"}) {
    EXPECT_FALSE(is_valid_utf8(text)) << text;
  }
}

}  // namespace
}  // namespace plateau

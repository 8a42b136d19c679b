#include "base/byte_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/machine.h"

namespace plateau {
namespace {

TEST(ByteSize, ReadsWhatPeopleWrite) {
  EXPECT_EQ(parse_byte_size("4096", "--memory"), 4096);
  EXPECT_EQ(parse_byte_size("4096B", "--memory"), 4096);
  EXPECT_EQ(parse_byte_size("2KiB", "--memory"), 2048);
  EXPECT_EQ(parse_byte_size("2kb", "--memory"), 2000);
  EXPECT_EQ(parse_byte_size("2k", "--memory"), 2048);
  EXPECT_EQ(parse_byte_size("512 MiB", "--memory"), 536870912);
  EXPECT_EQ(parse_byte_size("1.5GiB", "--memory"), 1610612736);
  EXPECT_EQ(parse_byte_size("6G", "--memory"), 6442450944);
  EXPECT_EQ(parse_byte_size("1TB", "--memory"), 1000000000000);
}

TEST(ByteSize, RefusesEverythingElse) {
  for (const char* text : {"", " ", "GiB", "0", "0.2", "-1", "-6GiB", "6GiBs", "6XB", "6 G B",
                           "nan", "inf", "1e3", "0x10", "99999999TiB", "6,5GiB", "+1"}) {
    try {
      const int64_t bytes = parse_byte_size(text, "--memory");
      FAIL() << '"' << text << "\" gave " << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.what(), testing::HasSubstr("[--memory] expected a size such as 6GiB"));
    }
  }
}

TEST(ByteSize, IsShownInTheUnitThatFits) {
  EXPECT_EQ(format_byte_size(0), "0 B");
  EXPECT_EQ(format_byte_size(1023), "1023 B");
  EXPECT_EQ(format_byte_size(1024), "1.0 KiB");
  EXPECT_EQ(format_byte_size(3355443), "3.2 MiB");
  EXPECT_EQ(format_byte_size(int64_t{5} << 30), "5.0 GiB");
}

TEST(Machine, HasSomeMemoryAndNotMoreThanAnAddressSpace) {
  const int64_t bytes = available_memory_bytes();
  EXPECT_GT(bytes, int64_t{16} << 20);
  EXPECT_LE(bytes, INT64_MAX / 2);
}

}  // namespace
}  // namespace plateau

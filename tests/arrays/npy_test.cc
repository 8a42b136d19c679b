#include "arrays/npy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "arrays/array_bytes.h"
#include "arrays/expect_error.h"

namespace plateau::arrays {
namespace {

using namespace testing;

std::vector<float> floats(const Array& array) {
  std::vector<float> values(static_cast<size_t>(array.n_elements()));
  array.read(0, std::span<float>(values));
  return values;
}

void expect_refused(ErrorCode code, const std::string& part, const std::string& file) {
  expect_error(code, part, [&] { parse_npy("K.npy", as_bytes(file)); });
  expect_error(code, "K.npy", [&] { parse_npy("K.npy", as_bytes(file)); });
}

TEST(Npy, ReadsEveryVersion) {
  const std::vector<float> values = {1.5f, -2, 3, 4, 5, 6};
  for (const int major : {1, 2, 3}) {
    const std::string file = npy(npy_header("<f4", "(1, 2, 3)"), bytes_of(values), major);
    const Array array = parse_npy("K.npy", as_bytes(file));
    EXPECT_EQ(array.shape, (std::vector<int64_t>{1, 2, 3}));
    EXPECT_EQ(array.dtype, DType::kF32);
    EXPECT_EQ(floats(array), values);
    std::vector<float> part(2);
    array.read(3, std::span<float>(part));
    EXPECT_EQ(part, (std::vector<float>{4, 5}));
  }
}

TEST(Npy, ReadsEveryElementType) {
  const auto read = [](const char* descr, const std::string& data) {
    const std::string file = npy(npy_header(descr, "(3,)"), data);
    return floats(parse_npy("K.npy", as_bytes(file)));
  };
  const std::vector<float> expected = {1, -2, 0};
  EXPECT_EQ(read("<f4", bytes_of<float>({1, -2, 0})), expected);
  EXPECT_EQ(read("<f8", bytes_of<double>({1, -2, 0})), expected);
  EXPECT_EQ(read("<i4", bytes_of<int32_t>({1, -2, 0})), expected);
  EXPECT_EQ(read("<i8", bytes_of<int64_t>({1, -2, 0})), expected);
  EXPECT_EQ(read("<f2", bytes_of<uint16_t>({0x3C00, 0xC000, 0})), expected);
}

TEST(Npy, ReadsHalfPrecisionExactly) {
  // 65504, the largest; 2^-14, the smallest normal; 2^-24 and -1023 * 2^-24, subnormal; -0; 1/3.
  const std::string file =
      npy(npy_header("<f2", "(8,)"),
          bytes_of<uint16_t>({0x7BFF, 0x0400, 0x0001, 0x83FF, 0x8000, 0x3555, 0x7C00, 0x7E00}));
  const std::vector<float> values = floats(parse_npy("K.npy", as_bytes(file)));
  EXPECT_EQ(values[0], 65504.0f);
  EXPECT_EQ(values[1], 0x1p-14f);
  EXPECT_EQ(values[2], 0x1p-24f);
  EXPECT_EQ(values[3], -1023 * 0x1p-24f);
  EXPECT_TRUE(values[4] == 0 && std::signbit(values[4]));
  EXPECT_EQ(values[5], 0.333251953125f);
  EXPECT_TRUE(std::isinf(values[6]));
  EXPECT_TRUE(std::isnan(values[7]));
}

TEST(Npy, ReadsOtherSpellingsOfTheHeader) {
  const std::string data = bytes_of<float>({1, 2});
  for (const char* header :
       {"{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<f4\"}",
        "  { 'fortran_order' : False , 'descr' : '<f4' , 'shape' : ( 2L , 1 ) , }   ",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}"}) {
    const std::string file = npy(header, data);
    EXPECT_EQ(floats(parse_npy("K.npy", as_bytes(file))), (std::vector<float>{1, 2})) << header;
  }
  const std::string scalar = npy(npy_header("<f4", "()"), bytes_of<float>({7}));
  EXPECT_EQ(floats(parse_npy("K.npy", as_bytes(scalar))), std::vector<float>{7});
  const std::string empty = npy(npy_header("<f4", "(0, 9223372036854775807)"), "");
  EXPECT_EQ(parse_npy("K.npy", as_bytes(empty)).n_elements(), 0);
}

TEST(Npy, RefusesWhatItDoesNotRead) {
  const std::string data(24, '\0');
  expect_refused(ErrorCode::kUnsupported, "Fortran",
                 npy(npy_header("<f4", "(2, 3)", /*is_fortran=*/true), data));
  expect_refused(ErrorCode::kUnsupported, "'>f4'", npy(npy_header(">f4", "(2, 3)"), data));
  expect_refused(ErrorCode::kUnsupported, "objects", npy(npy_header("|O", "(3,)"), data));
  expect_refused(ErrorCode::kUnsupported, "'<c8'", npy(npy_header("<c8", "(3,)"), data));
  expect_refused(ErrorCode::kUnsupported, "structured",
                 npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,)}", data));
  expect_refused(ErrorCode::kUnsupported, "4.0", npy(npy_header("<f4", "(2, 3)"), data, 4));
}

TEST(Npy, RefusesDamage) {
  const std::string data(24, '\0');
  const std::string good = npy(npy_header("<f4", "(2, 3)"), data);
  expect_refused(ErrorCode::kCorrupt, "[2, 3]", good.substr(0, good.size() - 1));
  expect_refused(ErrorCode::kCorrupt, "[2, 3]", good + "x");
  expect_refused(ErrorCode::kCorrupt, "[2, 4]", npy(npy_header("<f4", "(2, 4)"), data));
  expect_refused(ErrorCode::kCorrupt, "header", good.substr(0, 30));
  expect_refused(ErrorCode::kCorrupt, "ends", good.substr(0, 9));
  expect_refused(ErrorCode::kCorrupt, "ends", good.substr(0, 7));
  expect_refused(ErrorCode::kCorrupt, ".npy", "");
  // Products that wrap around, and dimensions that are none.
  expect_refused(ErrorCode::kCorrupt, "4294967296",
                 npy(npy_header("<f4", "(4294967296, 4294967296)"), ""));
  expect_refused(ErrorCode::kCorrupt, "dimensions",
                 npy(npy_header("<f4", "(99999999999999999999,)"), data));
  expect_refused(ErrorCode::kCorrupt, "dimensions", npy(npy_header("<f4", "(-6,)"), data));
  expect_refused(ErrorCode::kCorrupt, "header", npy(npy_header("<f4", "6"), data));
  expect_refused(ErrorCode::kCorrupt, "keys", npy("{'descr': '<f4', 'shape': (6,)}", data));
  expect_refused(ErrorCode::kCorrupt, "keys", npy("{'__class__': 1}", data));
  // A header of 4 GiB.
  expect_refused(ErrorCode::kCorrupt, "4294967295",
                 std::string("\x93NUMPY\x02\0\xFF\xFF\xFF\xFF{}", 14));
}

}  // namespace
}  // namespace plateau::arrays

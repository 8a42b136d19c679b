#include "arrays/safetensors.h"

#include <gtest/gtest.h>

#include "arrays/array_bytes.h"
#include "arrays/expect_error.h"

namespace plateau::arrays {
namespace {

using namespace testing;

void expect_refused(const std::string& part, const std::string& header, const std::string& data) {
  const std::string file = safetensors(header, data);
  expect_error(ErrorCode::kCorrupt, part, [&] { parse_safetensors("x.st", as_bytes(file)); });
  expect_error(ErrorCode::kCorrupt, "x.st", [&] { parse_safetensors("x.st", as_bytes(file)); });
}

TEST(Safetensors, ListsTensorsByOffset) {
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("keys":{"dtype":"F32","shape":[1,2],"data_offsets":[6,14]},)"
                             R"("a":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]},)"
                             R"("none":{"dtype":"F32","shape":[0,5],"data_offsets":[6,6]},)"
                             R"("mask":{"dtype":"BOOL","shape":[],"data_offsets":[14,15]}}   )";
  const std::string file = safetensors(header, bytes_of<uint16_t>({0x3F80, 0xC000, 0x3F00}) +
                                                   bytes_of<float>({3, 4}) + std::string(1, '\1'));
  const std::vector<Array> tensors = parse_safetensors("x.st", as_bytes(file));
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_EQ(tensors[1].name, "none");
  EXPECT_EQ(tensors[2].name, "keys");
  EXPECT_EQ(tensors[2].where, "x.st: keys");
  EXPECT_EQ(tensors[3].dtype, DType::kOther);
  EXPECT_EQ(tensors[3].dtype_name, "BOOL");
  std::vector<float> values(3);
  tensors[0].read(0, std::span<float>(values));
  EXPECT_EQ(values, (std::vector<float>{1, -2, 0.5f}));
  values.resize(2);
  tensors[2].read(0, std::span<float>(values));
  EXPECT_EQ(values, (std::vector<float>{3, 4}));
}

TEST(Safetensors, RefusesOffsetsThatDoNotFit) {
  const std::string data(16, '\0');
  const auto two = [](const char* a, const char* b) {
    return std::string(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)") + a +
           R"(},"b":{"dtype":"F32","shape":[2],"data_offsets":)" + b + "}}";
  };
  const std::string good = safetensors(two("[8,16]", "[0,8]"), data);
  EXPECT_EQ(parse_safetensors("x.st", as_bytes(good)).size(), 2u);
  expect_refused("overlap", two("[0,8]", "[0,8]"), data);
  expect_refused("overlap", two("[0,8]", "[4,12]"), data);
  expect_refused("hole", two("[0,8]", "[12,20]"), data + "1234");
  expect_refused("after", two("[0,8]", "[8,16]"), data + "x");
  expect_refused("within", two("[0,8]", "[8,17]"), data);
  expect_refused("within", two("[0,8]", "[16,8]"), data);
  expect_refused("within", two("[0,8]", "[8]"), data);
  expect_refused("[2]", two("[0,8]", "[8,12]"), data);
  expect_refused("numbers", two("[0,8]", "[-8,16]"), data);
  expect_refused("numbers", two("[0,8]", "[8,18446744073709551615]"), data);
  expect_refused("numbers", two("[0,8]", "[8.0,16.0]"), data);
  expect_refused("list", two("[0,8]", "8"), data);
}

TEST(Safetensors, RefusesOtherHeaders) {
  expect_refused("JSON", "{", "");
  expect_refused("JSON", "{]", "");
  expect_refused("twice",
                 R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                 R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                 "x");
  expect_refused("known dtype", R"({"a":{"dtype":"F5","shape":[1],"data_offsets":[0,1]}})", "x");
  expect_refused("a dtype", R"({"a":{"shape":[1],"data_offsets":[0,1]}})", "x");
  expect_refused("object", R"({"a":7})", "x");
  expect_refused("4611686018427387904",
                 R"({"a":{"dtype":"U8","shape":[4611686018427387904,4],"data_offsets":[0,0]}})",
                 "");
  for (const std::string& file : {std::string(), std::string("\x05\0\0\0\0\0\0\0", 8),
                                  little_endian(100, 8) + "{}", little_endian(~0ULL, 8) + "{}"}) {
    expect_error(ErrorCode::kCorrupt, "x.st", [&] { parse_safetensors("x.st", as_bytes(file)); });
  }
}

TEST(Safetensors, SurvivesDeepNesting) {
  expect_refused("JSON", "{" + std::string(100000, '['), "");
  expect_refused("object", R"({"a":)" + std::string(50000, '[') + std::string(50000, ']') + "}",
                 "");
}

}  // namespace
}  // namespace plateau::arrays

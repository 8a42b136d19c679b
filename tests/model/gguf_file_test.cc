#include "model/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "support/expect_error.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::model {
namespace {

using test::expect_error;
using test::GgufMutations;
using test::write_tiny_text;

class GgufFileTest : public testing::Test {
 protected:
  void write(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }

  /// Overwrites the value of `size` bytes that stands `skip` bytes after the first `anchor`.
  void overwrite_after(const std::string& anchor, size_t skip, uint64_t value, size_t size) {
    std::ifstream in(path_, std::ios::binary);
    std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const size_t at = content.find(anchor);
    ASSERT_NE(at, std::string::npos);
    for (size_t i = 0; i < size; ++i) {
      content[at + anchor.size() + skip + i] = static_cast<char>(value >> (8 * i));
    }
    write(content);
  }

  void expect_corrupt() {
    expect_error([&] { GgufFile::open(path_); }, ErrorCode::kCorrupt, {path_});
  }

  test::TempDir dir_;
  std::string path_ = dir_.file("file.gguf");
};

TEST_F(GgufFileTest, AMissingFileIsNotFound) {
  expect_error([&] { GgufFile::open(path_); }, ErrorCode::kNotFound, {path_});
  expect_error([] { GgufFile::open(""); }, ErrorCode::kNotFound, {"GGUF"});
}

TEST_F(GgufFileTest, ADirectoryOrADeviceIsRefusedByWhatItIs) {
  expect_error([&] { GgufFile::open(dir_.path()); }, ErrorCode::kUnsupported, {"directory"});
  expect_error([] { GgufFile::open("/dev/null"); }, ErrorCode::kUnsupported, {"special file"});
}

TEST_F(GgufFileTest, WhatIsNotGgufIsCorrupt) {
  for (const std::string content :
       {"", "G", "GGUF", "not a model, but some text", "\x89PNG\r\n\x1a\n"}) {
    write(content);
    expect_corrupt();
  }
  write(std::string(1 << 16, '\0'));
  expect_corrupt();
}

TEST_F(GgufFileTest, ATruncatedFileIsCorruptAtEveryLength) {
  write_tiny_text({.n_layer = 1}, path_);
  const size_t whole = std::filesystem::file_size(path_);
  const GgufFile file = GgufFile::open(path_);
  const auto& last = file.tensors().back();
  const size_t needed = last.file_offset + last.n_bytes;  // padding may be missing
  ASSERT_LE(needed, whole);
  const size_t data_begin = file.tensors().front().file_offset;
  // From the end, because a cut file cannot grow again: the data in large steps, the header in
  // small ones.
  size_t length = needed;
  while (length > 0) {
    length -= length > data_begin ? std::min<size_t>(length - data_begin, 9973)
                                  : std::min<size_t>(length, 37);
    test::truncate_file(path_, length);
    SCOPED_TRACE(length);
    expect_corrupt();
  }
}

TEST_F(GgufFileTest, ATruncatedFileNamesTheTensorThatEndsEarly) {
  write_tiny_text({}, path_, {.data = GgufMutations::Data::kNone});
  expect_error([&] { GgufFile::open(path_); }, ErrorCode::kCorrupt,
               {path_, "token_embd.weight", "truncated"});
}

TEST_F(GgufFileTest, AbsurdNumbersInTheHeaderAreCorrupt) {
  struct Case {
    const char* what;
    std::string anchor;
    size_t skip;
    uint64_t value;
    size_t size;
  };
  const size_t kDims = 0, kNe0 = 4, kType = 4 + 8 + 8;  // after a matrix's name
  const std::string matrix = "blk.0.attn_q.weight", vector = "output_norm.weight";
  const std::vector<Case> cases = {
      {"version 1", "GGUF", 0, 1, 4},
      {"version 99", "GGUF", 0, 99, 4},
      {"other byte order", "GGUF", 0, 3U << 24, 4},
      {"tensor count", "GGUF", 4, uint64_t{1} << 40, 8},
      {"negative tensor count", "GGUF", 4, ~uint64_t{0}, 8},
      {"key count", "GGUF", 12, uint64_t{1} << 40, 8},
      {"key length", "GGUF", 20, uint64_t{1} << 50, 8},
      {"no dimensions", matrix, kDims, 0, 4},
      {"nine dimensions", matrix, kDims, 9, 4},
      {"dimension 0", matrix, kNe0, 0, 8},
      {"dimension -1", matrix, kNe0, ~uint64_t{0}, 8},
      {"dimension 2^62", matrix, kNe0, uint64_t{1} << 62, 8},
      {"dimension 2^40", matrix, kNe0, uint64_t{1} << 40, 8},
      {"removed type", matrix, kType, 4, 4},
      {"unknown type", matrix, kType, 999, 4},
      {"negative type", matrix, kType, 0xFFFFFFFF, 4},
      {"offset beyond the file", vector, 4 + 8 + 4, uint64_t{1} << 60, 8},
      {"offset not aligned", vector, 4 + 8 + 4, 1, 8},
      {"2^60 tokens", "tokenizer.ggml.tokens", 8, uint64_t{1} << 60, 8},
      {"2^34 tokens", "tokenizer.ggml.tokens", 8, uint64_t{1} << 34, 8},
      {"2^60 token types", "tokenizer.ggml.token_type", 8, uint64_t{1} << 60, 8},
      {"2^34 token types", "tokenizer.ggml.token_type", 8, uint64_t{1} << 34, 8},
      {"unknown key type", "general.architecture", 0, 77, 4},
      {"array of arrays", "tokenizer.ggml.tokens", 4, 9, 4},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    write_tiny_text({}, path_);
    overwrite_after(c.anchor, c.skip, c.value, c.size);
    expect_corrupt();
  }
}

TEST_F(GgufFileTest, TwoTensorsOfOneNameAreCorrupt) {
  write_tiny_text({}, path_);
  test::patch_file(path_, "blk.0.attn_k.weight", "blk.0.attn_v.weight");
  expect_corrupt();
}

TEST_F(GgufFileTest, AnAlignmentThatGgmlCannotMapIsRefused) {
  for (const uint32_t alignment : {1U, 8U, 16U}) {
    write_tiny_text({}, path_, {.set_keys = {{"general.alignment", alignment}}});
    expect_error([&] { GgufFile::open(path_); }, ErrorCode::kUnsupported,
                 {path_, "general.alignment", "32", std::to_string(alignment)});
  }
  for (const uint32_t alignment : {0U, 3U}) {
    write_tiny_text({}, path_, {.set_keys = {{"general.alignment", uint32_t{32}}}});
    overwrite_after("general.alignment", 4, alignment, 4);
    expect_corrupt();
  }
}

class GgufKeys : public GgufFileTest {
 protected:
  GgufKeys() {
    test::GgufPlan plan;
    plan.keys = {{"yes", true},
                 {"u32", uint32_t{7}},
                 {"i32", int32_t{-7}},
                 {"u64", std::numeric_limits<uint64_t>::max()},
                 {"i64", std::numeric_limits<int64_t>::min()},
                 {"f32", 1.5F},
                 {"f64", 2.5},
                 {"text", std::string("words")},
                 {"floats", std::vector<float>{1, 2}},
                 {"ints", std::vector<int32_t>{-1, 2}},
                 {"uints", std::vector<uint32_t>{3, 0xFFFFFFFF}},
                 {"texts", std::vector<std::string>{"a", ""}}};
    plan.tensors = {{.name = "matrix", .ne = {32, 3}, .type = GGML_TYPE_Q8_0},
                    {.name = "vector", .ne = {5}}};
    test::write_gguf(plan, {}, path_);
  }
  void expect_wrong_type(const std::function<void(const GgufFile&)>& get, const std::string& key,
                         const std::string& expected, const std::string& found) {
    expect_error([&] { get(GgufFile::open(path_)); }, ErrorCode::kCorrupt,
                 {path_, key, expected, found});
  }
};

TEST_F(GgufKeys, AreReadInTheirTypes) {
  const GgufFile file = GgufFile::open(path_);
  EXPECT_EQ(file.path(), path_);
  EXPECT_TRUE(file.has("u32"));
  EXPECT_FALSE(file.has("u3"));
  EXPECT_TRUE(file.is_array("ints"));
  EXPECT_FALSE(file.is_array("u32"));
  EXPECT_FALSE(file.is_array("absent"));
  EXPECT_EQ(file.find_bool("yes"), true);
  EXPECT_EQ(file.get_int("u32", 0, 7), 7);
  EXPECT_EQ(file.get_int("i32", -7, 0), -7);
  EXPECT_EQ(file.get_int("i64", INT64_MIN, 0), INT64_MIN);
  EXPECT_EQ(file.get_int("u64", 0, INT64_MAX), INT64_MAX);  // saturates rather than wraps
  EXPECT_EQ(file.get_float("f32"), 1.5);
  EXPECT_EQ(file.get_float("f64"), 2.5);
  EXPECT_EQ(file.get_string("text"), "words");
  EXPECT_THAT(*file.find_float_array("floats"), testing::ElementsAre(1, 2));
  EXPECT_THAT(*file.find_int_array("ints"), testing::ElementsAre(-1, 2));
  EXPECT_THAT(*file.find_int_array("uints"), testing::ElementsAre(3, 0xFFFFFFFFLL));
  EXPECT_THAT(*file.find_string_array("texts"), testing::ElementsAre("a", ""));
  EXPECT_EQ(file.find_array_size("texts"), 2);
}

TEST_F(GgufKeys, AnAbsentOptionalKeyIsNoValueAndARequiredOneAnError) {
  const GgufFile file = GgufFile::open(path_);
  EXPECT_EQ(file.find_bool("absent"), std::nullopt);
  EXPECT_EQ(file.find_int("absent", 0, 1), std::nullopt);
  EXPECT_EQ(file.find_float("absent"), std::nullopt);
  EXPECT_EQ(file.find_string("absent"), std::nullopt);
  EXPECT_EQ(file.find_array_size("absent"), std::nullopt);
  EXPECT_EQ(file.find_float_array("absent"), std::nullopt);
  EXPECT_EQ(file.find_int_array("absent"), std::nullopt);
  EXPECT_EQ(file.find_string_array("absent"), std::nullopt);
  expect_wrong_type([](const auto& f) { f.get_int("absent", 0, 1); }, "absent", "integer", "none");
  expect_wrong_type([](const auto& f) { f.get_float("absent"); }, "absent", "float", "none");
  expect_wrong_type([](const auto& f) { f.get_string("absent"); }, "absent", "string", "none");
}

TEST_F(GgufKeys, AWrongTypeNamesBoth) {
  expect_wrong_type([](const auto& f) { f.get_int("text", 0, 1); }, "text", "integer", "str");
  expect_wrong_type([](const auto& f) { f.get_int("f32", 0, 1); }, "f32", "integer", "f32");
  expect_wrong_type([](const auto& f) { f.find_float("u32"); }, "u32", "float", "u32");
  expect_wrong_type([](const auto& f) { f.find_string("yes"); }, "yes", "string", "bool");
  expect_wrong_type([](const auto& f) { f.find_bool("u32"); }, "u32", "bool", "u32");
  expect_wrong_type([](const auto& f) { f.find_array_size("u32"); }, "u32", "array", "u32");
  expect_wrong_type([](const auto& f) { f.find_float_array("ints"); }, "ints", "f32", "i32");
  expect_wrong_type([](const auto& f) { f.find_int_array("texts"); }, "texts", "integers", "str");
  expect_wrong_type([](const auto& f) { f.find_string_array("floats"); }, "floats", "strings",
                    "f32");
  expect_wrong_type([](const auto& f) { f.find_string_array("text"); }, "text", "array", "str");
}

TEST_F(GgufKeys, AnIntegerOutOfRangeNamesTheRange) {
  expect_wrong_type([](const auto& f) { f.get_int("u32", 8, 9); }, "u32", "between 8 and 9", "7");
  expect_wrong_type([](const auto& f) { f.find_int("u32", 0, 6); }, "u32", "between 0 and 6", "7");
}

TEST_F(GgufKeys, TensorsHaveShapeTypeAndPlace) {
  const GgufFile file = GgufFile::open(path_);
  ASSERT_EQ(file.tensors().size(), 2U);
  const TensorInfo* matrix = file.find_tensor("matrix");
  ASSERT_NE(matrix, nullptr);
  EXPECT_THAT(matrix->ne, testing::ElementsAre(32, 3, 1, 1));
  EXPECT_EQ(matrix->type, GGML_TYPE_Q8_0);
  EXPECT_EQ(matrix->n_bytes, 3U * 34U);
  EXPECT_EQ(file.find_tensor("vector")->file_offset, matrix->file_offset + 128);  // padded to 32
  EXPECT_EQ(file.tensor_bytes(), 3U * 34U + 5U * 4U);
  EXPECT_EQ(file.find_tensor("matri"), nullptr);
  EXPECT_EQ(&file.require_tensor("matrix", {32, 3}), matrix);
  expect_wrong_type(
      [](const auto& f) {
        f.require_tensor("matrix", {3, 32});
      },
      "matrix", "[3, 32]", "[32, 3]");
  expect_wrong_type([](const auto& f) { f.require_tensor("absent", {5}); }, "absent", "[5]",
                    "none");
}

TEST(ShapeToString, LeavesOutTrailingOnes) {
  EXPECT_EQ(shape_to_string({5, 1, 1, 1}), "[5]");
  EXPECT_EQ(shape_to_string({1, 1, 1, 1}), "[1]");
  EXPECT_EQ(shape_to_string({1, 1, 3, 1}), "[1, 1, 3]");
  EXPECT_EQ(shape_to_string({1, 2, 3, 4}), "[1, 2, 3, 4]");
}

}  // namespace
}  // namespace plateau::model

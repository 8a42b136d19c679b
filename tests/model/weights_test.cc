#include "model/weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "support/expect_error.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::model {
namespace {

TEST(GgufWeights, HoldTheBytesOfTheFile) {
  const test::TempDir dir;
  const std::string path = dir.file("mmproj.gguf");
  test::write_tiny_vision({.type = GGML_TYPE_Q8_0}, path);
  const GgufFile file = GgufFile::open(path);
  GgufWeights loaded(file, Device::cpu());
  const GgufWeights weights = std::move(loaded);
  std::ifstream in(path, std::ios::binary);
  for (const TensorInfo& info : file.tensors()) {
    const ggml_tensor* tensor = weights.map().get(info.name);
    EXPECT_STREQ(tensor->name, info.name.c_str());
    EXPECT_EQ(tensor->type, info.type);
    EXPECT_TRUE(std::equal(info.ne.begin(), info.ne.end(), tensor->ne));
    ASSERT_EQ(ggml_nbytes(tensor), info.n_bytes);
    std::vector<char> want(info.n_bytes), got(info.n_bytes);
    in.seekg(static_cast<std::streamoff>(info.file_offset));
    in.read(want.data(), static_cast<std::streamsize>(want.size()));
    ggml_backend_tensor_get(tensor, got.data(), 0, got.size());
    EXPECT_EQ(got, want) << info.name;
  }
}

TEST(WeightMap, AMissingNameIsABugOnlyWhereItIsRequired) {
  const WeightMap map;
  EXPECT_EQ(map.find("nothing"), nullptr);
  test::expect_error([&] { map.get("nothing"); }, ErrorCode::kInternal, {"nothing"});
}

TEST(GgufWeights, AFileThatVanishedIsAnError) {
  const test::TempDir dir;
  const std::string path = dir.file("mmproj.gguf");
  test::write_tiny_vision({}, path);
  const GgufFile file = GgufFile::open(path);
  std::filesystem::remove(path);
  test::expect_error([&] { GgufWeights(file, Device::cpu()); }, ErrorCode::kNotFound, {path});
}

}  // namespace
}  // namespace plateau::model

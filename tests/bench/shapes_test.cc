// The named shapes against their published parameter counts, and the files made of them.
#include "synth/shapes.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "model/gguf_file.h"
#include "model/model_config.h"
#include "plateau/error.h"
#include "support/temp_dir.h"

namespace plateau::synth {
namespace {

using ::testing::HasSubstr;

double billions(const GgufPlan& plan) {
  double n = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    double n_values = 1;
    for (const int64_t ne : tensor.ne) n_values *= static_cast<double>(ne);
    n += n_values;
  }
  return n / 1e9;
}

TEST(Shapes, HaveThePublishedParameterCounts) {
  // Model cards of Qwen2, Qwen2.5 and Qwen3, tied embeddings counted once.
  const std::map<std::string, double> published = {
      {"0.5b", 0.494},          {"internvl3.5-1b", 0.596}, {"2b", 1.54},
      {"internvl3.5-2b", 1.72}, {"qwen2.5-vl-3b", 3.09},   {"internvl3.5-4b", 4.02},
      {"qwen2.5-vl-7b", 7.61},  {"internvl3.5-8b", 8.19}};
  EXPECT_EQ(shapes().size(), published.size());
  for (const Shape& shape : shapes()) {
    const double expected = published.at(shape.name);
    EXPECT_NEAR(billions(plan_tiny_text(shape.text)), expected, 0.01 * expected) << shape.name;
    if (shape.vision) {
      EXPECT_EQ(tokens_per_tile(*shape.vision), 256) << shape.name;
      EXPECT_EQ(shape.vision->projection_dim, shape.text.n_embd) << shape.name;
    }
  }
}

TEST(FindShape, SuggestsTheNearestName) {
  try {
    (void)find_shape("internvl3.5-8");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean internvl3.5-8b?"));
  }
}

TEST(MakeTextShape, WritesOnceAndLeavesNoParts) {
  const test::TempDir dir;
  ShapeRequest request;
  request.shape = "0.5b";
  request.type = "q4_0";
  request.n_layer = 1;
  request.folder = dir.file("shapes");
  const ShapeFile first = make_text_shape(request);
  EXPECT_TRUE(first.was_made);
  EXPECT_EQ(first.n_layer, 1);
  EXPECT_EQ(first.n_layer_published, 24);
  const auto config = model::read_model_config(model::GgufFile::open(first.path));
  EXPECT_EQ(config.n_layer, 1);
  EXPECT_EQ(config.n_embd, 896);
  EXPECT_FALSE(make_text_shape(request).was_made);
  size_t n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(request.folder)) {
    EXPECT_EQ(entry.path().extension(), ".gguf");
    ++n_files;
  }
  EXPECT_EQ(n_files, 1u);
}

TEST(MakeTextShape, AnInterruptionLeavesNothing) {
  const test::TempDir dir;
  ShapeRequest request;
  request.shape = "0.5b";
  request.folder = dir.file("shapes");
  request.on_write = [](const std::string&, int64_t n_bytes) {
    EXPECT_GT(n_bytes, int64_t{500} << 20);
  };
  int n_polls = 0;
  request.should_cancel = [&] { return ++n_polls == 3; };
  EXPECT_THROW(make_text_shape(request), Error);
  EXPECT_TRUE(std::filesystem::is_empty(request.folder));
}

TEST(MakeTextShape, RefusesWhatItCannotMake) {
  const test::TempDir dir;
  const auto message = [&](const std::string& shape, const std::string& type, int n_layer) {
    ShapeRequest request;
    request.shape = shape;
    request.type = type;
    request.n_layer = n_layer;
    request.folder = dir.path();
    try {
      (void)make_text_shape(request);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message("0.5b", "q8_0", 25), HasSubstr("1 to 24"));
  EXPECT_THAT(message("0.5b", "q8_0", -1), HasSubstr("got -1"));
  EXPECT_THAT(message("0.5b", "q5_0", 0), HasSubstr("f16, q4_0 or q8_0"));
  EXPECT_THAT(message("", "q8_0", 0), HasSubstr("--shape"));
}

TEST(MakeTextShape, AFolderThatCannotBeWrittenIsAnError) {
  ShapeRequest request;
  request.shape = "0.5b";
  request.folder = "/proc/shapes";
  try {
    (void)make_text_shape(request);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("/proc/shapes"));
  }
}

TEST(MakeVisionShape, RefusesAShapeWithoutOne) {
  ShapeRequest request;
  request.shape = "2b";
  try {
    (void)make_vision_shape(request);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  }
}

}  // namespace
}  // namespace plateau::synth

#include "model/language_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "support/expect_error.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::model {
namespace {

using test::expect_error;
using test::GgufMutations;

class LanguageModelTest : public testing::Test {
 protected:
  LanguageModel load(const GgufMutations& mutations = {}, const LoadOptions& options = {}) {
    test::write_tiny_text({}, path_, mutations);
    return LanguageModel::load(path_, options);
  }
  test::TempDir dir_;
  std::string path_ = dir_.file("text.gguf");
};

TEST_F(LanguageModelTest, LoadsAllThatTheGraphNeeds) {
  LanguageModel loaded = load();
  const LanguageModel model = std::move(loaded);
  EXPECT_EQ(model.config().n_layer, 2);
  EXPECT_EQ(model.chat_template(), test::kTinyChatTemplate);
  for (const test::PlannedTensor& tensor : test::plan_tiny_text({}).tensors) {
    ASSERT_NE(model.weights().find(tensor.name), nullptr) << tensor.name;
    EXPECT_EQ(model.weights().get(tensor.name)->ne[0], tensor.ne[0]);
  }
}

TEST_F(LanguageModelTest, WithoutATemplateTheSourceIsEmpty) {
  EXPECT_EQ(load({.omit_keys = {"tokenizer.chat_template"}}).chat_template(), "");
}

TEST_F(LanguageModelTest, ProgressRunsToOneAndCanStop) {
  std::vector<float> seen;
  load({}, {.on_progress = [&](float fraction) {
         seen.push_back(fraction);
         return true;
       }});
  ASSERT_FALSE(seen.empty());
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), 1.0F);
  expect_error([&] { load({}, {.on_progress = [](float) { return false; }}); },
               ErrorCode::kCancelled, {"interrupted"});
}

TEST_F(LanguageModelTest, WrongFilesNeverReachLibllama) {
  expect_error([&] { LanguageModel::load(dir_.file("none"), {}); }, ErrorCode::kNotFound, {"none"});
  expect_error([&] { LanguageModel::load(dir_.path(), {}); }, ErrorCode::kUnsupported,
               {"directory"});
  test::write_tiny_vision({}, path_);
  expect_error([&] { LanguageModel::load(path_, {}); }, ErrorCode::kUnsupported, {"--mmproj"});
}

// What only libllama notices comes back with its reason.
TEST_F(LanguageModelTest, LibllamasRefusalKeepsItsReason) {
  expect_error(
      [&] {
        load({.set_keys = {{"tokenizer.ggml.pre", "bogus"}}});
      },
      ErrorCode::kCorrupt, {path_, "bogus"});
  const auto n = test::make_tiny_vocab().tokens.size();
  expect_error(
      [&] {
        load({.set_keys = {{"tokenizer.ggml.scores", std::vector<float>(n - 1, 0.0F)}}});
      },
      ErrorCode::kCorrupt, {path_, "scores"});
  expect_error(
      [&] {
        load({.set_keys = {{"qwen3.block_count", uint64_t{2}}}});
      },
      ErrorCode::kCorrupt, {path_, "qwen3.block_count"});
  expect_error(
      [&] {
        load({.set_keys = {{"split.count", uint32_t{2}}}});
      },
      ErrorCode::kCorrupt, {path_, "split.count"});
}

}  // namespace
}  // namespace plateau::model

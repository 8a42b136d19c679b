// A text model and a projector are opened together, so each must be the right one.
#include <gtest/gtest.h>

#include <string>

#include "plateau/engine.h"
#include "support/expect_error.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau {
namespace {

using test::expect_error;

class Pair : public testing::Test {
 protected:
  Pair() {
    test::write_tiny_text({}, text_);
    test::write_tiny_vision({}, mmproj_);
  }
  static void open(const std::string& text, const std::string& mmproj) {
    EngineOptions options;
    options.model_path = text;
    options.mmproj_path = mmproj;
    options.n_threads = 1;
    Engine::open(options);
  }
  test::TempDir dir_;
  std::string text_ = dir_.file("text.gguf"), mmproj_ = dir_.file("mmproj.gguf");
};

TEST_F(Pair, ThatBelongsTogetherOpens) {
  EXPECT_NO_THROW(open(text_, mmproj_));
  EXPECT_NO_THROW(open(text_, ""));
}

TEST_F(Pair, SwappedIsNamedAsSuch) {
  expect_error([&] { open(mmproj_, text_); }, ErrorCode::kUnsupported, {mmproj_, "--mmproj"});
  expect_error([&] { open(text_, text_); }, ErrorCode::kUnsupported, {text_, "-m"});
  expect_error([&] { open(mmproj_, mmproj_); }, ErrorCode::kUnsupported, {mmproj_, "--mmproj"});
}

TEST_F(Pair, OfDifferentWidthsNamesBoth) {
  test::write_tiny_vision({.projection_dim = 96}, mmproj_);
  expect_error([&] { open(text_, mmproj_); }, ErrorCode::kUnsupported,
               {text_, mmproj_, "64", "96"});
}

TEST_F(Pair, AMissingPartIsNotFound) {
  expect_error([&] { open(dir_.file("a"), mmproj_); }, ErrorCode::kNotFound, {dir_.file("a")});
  expect_error([&] { open(text_, dir_.file("b")); }, ErrorCode::kNotFound, {dir_.file("b")});
}

}  // namespace
}  // namespace plateau

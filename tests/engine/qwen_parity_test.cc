// Qwen2.5-VL from the file to the logits: our reader, tower and decoder against llama.cpp's library
// and decoder. Sizes are whole tokens, so that no resize differs.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/mtmd_harness.h"
#include "support/compare.h"

namespace plateau::test {
namespace {

constexpr double kNmse = 1e-5;
constexpr int kSide = 28;  // pixels of a token

class QwenParity : public testing::Test {
 protected:
  static Request native(Request request) {
    request.image.min_tokens = 1;
    return request;
  }

  const MtmdPair pair_ = qwen_pair();
};

TEST_F(QwenParity, TokensAndLogitsForEverySize) {
  for (const auto& [cols, rows] : {std::pair(2, 2), {1, 5}, {9, 2}, {4, 4}, {7, 11}}) {
    SCOPED_TRACE(testing::Message() << cols << " x " << rows);
    const std::vector<std::pair<int, int>> sizes = {{cols * kSide, rows * kSide}};
    const Prefilled want = pair_.llamas(sizes);
    const Prefilled ours = pair_.ours(native(pair_.ask(sizes)));
    EXPECT_EQ(ours.tokens, want.tokens);
    EXPECT_TRUE(nmse_at_most(ours.logits, want.logits, kNmse));
  }
}

TEST_F(QwenParity, TwoPicturesInBlocksThatCutAtEveryRow) {
  constexpr int kCols = 5;
  const std::vector<std::pair<int, int>> sizes = {{kCols * kSide, 6 * kSide}, {84, 140}};
  const std::vector<float> want = pair_.llamas(sizes).logits;
  Request request = native(pair_.ask(sizes));
  for (const int n_block : {1, 3, kCols, 2 * kCols, 3 * kCols, 4 * kCols, 64, 512}) {
    SCOPED_TRACE(n_block);
    request.kv.block = n_block;
    EXPECT_TRUE(nmse_at_most(pair_.ours(request).logits, want, kNmse));
  }
}

TEST_F(QwenParity, AFilmOfTwoFrames) {
  const std::vector<float> want = pair_.llamas_film(4 * kSide, 3 * kSide).logits;
  Request request = native(pair_.ask_film(4 * kSide, 3 * kSide));
  for (const int n_block : {4, 7, 512}) {
    SCOPED_TRACE(n_block);
    request.kv.block = n_block;
    EXPECT_TRUE(nmse_at_most(pair_.ours(request).logits, want, kNmse));
  }
}

// That the comparison can fail.
TEST_F(QwenParity, ThePictureMatters) {
  const std::vector<std::pair<int, int>> sizes = {{112, 112}}, other = {{112, 84}};
  EXPECT_GT(nmse(pair_.ours(native(pair_.ask(sizes))).logits, pair_.llamas(other).logits),
            100 * kNmse);
}

}  // namespace
}  // namespace plateau::test

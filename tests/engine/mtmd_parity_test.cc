// Pictures that llama.cpp's library encodes, through the whole engine and through llama.cpp: the
// same tokens, and the same logits whatever the blocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/mtmd_harness.h"
#include "support/compare.h"

namespace plateau::test {
namespace {

using Sizes = std::vector<std::pair<int, int>>;

constexpr double kNmse = 1e-5;
// Smaller than a chunk, a chunk, larger, wide, high.
const Sizes kSizes = {{1, 1}, {40, 30}, {56, 56}, {200, 150}, {300, 40}, {33, 280}};

struct Case {
  std::string name;
  MtmdPair (*pair)();
};

class MtmdParity : public testing::TestWithParam<Case> {};

TEST_P(MtmdParity, TokensAreLlamaCpps) {
  const MtmdPair pair = GetParam().pair();
  for (const auto& size : kSizes) {
    SCOPED_TRACE(testing::Message() << size.first << " x " << size.second);
    const Prefilled ours = pair.ours(pair.ask({size}));
    EXPECT_GT(std::count(ours.tokens.begin(), ours.tokens.end(), -1), 0);
    EXPECT_EQ(ours.tokens, pair.llamas({size}).tokens);
  }
}

TEST_P(MtmdParity, LogitsForEverySize) {
  const MtmdPair pair = GetParam().pair();
  for (const auto& size : kSizes) {
    SCOPED_TRACE(testing::Message() << size.first << " x " << size.second);
    EXPECT_TRUE(
        nmse_at_most(pair.ours(pair.ask({size})).logits, pair.llamas({size}).logits, kNmse));
  }
}

// Blocks end within the picture, within a part of it, and within the tokens between parts.
TEST_P(MtmdParity, LogitsForEveryBlockSize) {
  const MtmdPair pair = GetParam().pair();
  const Sizes sizes = {{200, 150}};
  const std::vector<float> want = pair.llamas(sizes).logits;
  Request request = pair.ask(sizes);
  for (const int n_block : {1, 2, 3, 5, 7, 13, 29, 64, 512}) {
    SCOPED_TRACE(n_block);
    request.kv.block = n_block;
    EXPECT_TRUE(nmse_at_most(pair.ours(request).logits, want, kNmse));
  }
}

TEST_P(MtmdParity, TwoPicturesInOnePrompt) {
  const MtmdPair pair = GetParam().pair();
  const Sizes sizes = {{200, 150}, {40, 90}};
  const Prefilled want = pair.llamas(sizes);
  const Prefilled ours = pair.ours(pair.ask(sizes));
  EXPECT_EQ(ours.tokens, want.tokens);
  EXPECT_TRUE(nmse_at_most(ours.logits, want.logits, kNmse));
}

// That the comparison can fail: of another picture, the logits differ.
TEST_P(MtmdParity, ThePictureMatters) {
  const MtmdPair pair = GetParam().pair();
  EXPECT_GT(nmse(pair.ours(pair.ask({{56, 50}})).logits, pair.llamas({{56, 56}}).logits),
            100 * kNmse);
}

INSTANTIATE_TEST_SUITE_P(
    Projectors, MtmdParity,
    testing::Values(
        Case{"Clip", [] { return llava_pair(); }},
        Case{"SigLip", [] { return llava_pair({.is_clip = false}); }},
        Case{"OneVision",
             [] {
               return llava_pair({.is_clip = false, .grid_sizes = {56, 112, 112, 56, 112, 112}});
             }},
        Case{"OlderNames", [] { return llava_pair({.swaps_ffn = true, .type = GGML_TYPE_F32}); }},
        Case{"Janus", [] { return llava_pair({.projector_type = "janus_pro", .is_clip = false}); }},
        Case{"Yi", [] { return llava_pair({.has_norms = true}); }},
        Case{"SmolVlm", [] { return smolvlm_pair(); }},
        Case{"SmolVlmOfNativeSize", [] { return smolvlm_pair({.longest_edge = 0}); }}),
    [](const testing::TestParamInfo<Case>& test) { return test.param.name; });

}  // namespace
}  // namespace plateau::test

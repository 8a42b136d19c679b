// Exact token counts, and the same rows however they are read.
#include "bench/input.h"

#include <gmock/gmock.h>

#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::bench {
namespace {

TEST(SyntheticPrompt, HasExactlyTheVisualTokensAskedFor) {
  for (const int64_t n : {1, 255, 256, 257, 1000, 4096}) {
    const engine::PromptPlan prompt = synthetic_prompt(n, kTokensPerUnit, /*n_vocab=*/300);
    EXPECT_EQ(prompt.n_visual_tokens(), n);
    EXPECT_EQ(prompt.n_text_tokens(), kTokensBefore + kTokensAfter);
  }
}

TEST(RandomTokens, LieInTheVocabularyAndRepeat) {
  const auto tokens = random_tokens(1000, 17);
  EXPECT_THAT(tokens, ::testing::Each(::testing::AllOf(::testing::Ge(0), ::testing::Lt(17))));
  EXPECT_EQ(tokens, random_tokens(1000, 17));
}

class RowReaderTest : public ::testing::Test {
 protected:
  RowReaderTest() {
    test::write_tiny_text({}, dir_.file("a.gguf"));
    point_.engine.model_path = dir_.file("a.gguf");
    point_.engine.n_threads = 1;
    loaded_.emplace(point_.engine, std::function<bool(float)>{});
    point_.n_input = 300;
    plan_.emplace(plan_point(point_, *loaded_));
    text_.assign(static_cast<size_t>(n_embd()) * (kTokensBefore + kTokensAfter), 0.5F);
  }

  int n_embd() const { return loaded_->language_model.config().n_embd; }

  std::vector<float> read_in_portions_of(int n) {
    const auto units = open_units(point_, *plan_, *loaded_);
    RowReader reader(plan_->prompt, text_, n_embd(), *units);
    std::vector<float> all;
    while (true) {
      const std::vector<float> rows = reader.next(n);
      if (rows.empty()) return all;
      all.insert(all.end(), rows.begin(), rows.end());
    }
  }

  test::TempDir dir_;
  BenchPoint point_;
  std::optional<engine::LoadedModel> loaded_;
  std::optional<engine::RequestPlan> plan_;
  std::vector<float> text_;
};

TEST_F(RowReaderTest, PortionsOfAnySizeGiveTheSameRows) {
  const std::vector<float> all = read_in_portions_of(1000);
  EXPECT_EQ(all.size(), static_cast<size_t>((300 + 48) * n_embd()));
  EXPECT_EQ(all.front(), 0.5F);
  EXPECT_EQ(all.back(), 0.5F);
  EXPECT_EQ(read_in_portions_of(1), all);
  EXPECT_EQ(read_in_portions_of(127), all);
}

}  // namespace
}  // namespace plateau::bench

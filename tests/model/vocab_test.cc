#include "model/vocab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/language_model.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::model {
namespace {

class VocabTest : public testing::Test {
 protected:
  static LanguageModel load(const test::GgufMutations& mutations = {}) {
    const test::TempDir dir;
    test::write_tiny_text({}, dir.file("text.gguf"), mutations);
    return LanguageModel::load(dir.file("text.gguf"), {});
  }
  static Token id_of(const std::string& text) {
    const std::vector<std::string> tokens = test::make_tiny_vocab().tokens;
    return static_cast<Token>(std::find(tokens.begin(), tokens.end(), text) - tokens.begin());
  }
  std::string text_of(const std::vector<Token>& tokens) const {
    std::string text;
    for (const Token token : tokens) text += vocab_.piece(token);
    return text;
  }
  const LanguageModel model_ = load();
  const Vocab& vocab_ = model_.vocab();
};

TEST_F(VocabTest, TextComesBackFromItsTokens) {
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes += static_cast<char>(byte);
  for (const std::string& text :
       {std::string("What number is on the cat?"), std::string(" two  spaces \n\n"),
        std::string("caf\xC3\xA9 \xE7\x8C\xAB \xF0\x9F\x98\x80"), std::string("a\0b", 3)}) {
    EXPECT_EQ(text_of(vocab_.tokenize(text, /*parse_special=*/false)), text);
  }
  EXPECT_TRUE(vocab_.tokenize("", true).empty());
  EXPECT_FALSE(vocab_.tokenize(all_bytes, true).empty());  // not UTF-8; no crash
}

TEST_F(VocabTest, SpecialTokensAreReadOnlyWhereAskedFor) {
  const Token start = id_of("<|im_start|>");
  EXPECT_THAT(vocab_.tokenize("<|im_start|>user", /*parse_special=*/true),
              testing::ElementsAre(start, id_of("user")));
  const std::vector<Token> plain = vocab_.tokenize("<|im_start|>user", /*parse_special=*/false);
  EXPECT_THAT(plain, testing::Not(testing::Contains(start)));
  EXPECT_EQ(text_of(plain), "<|im_start|>user");
}

TEST_F(VocabTest, ControlTokensHaveNoText) {
  EXPECT_EQ(vocab_.piece(id_of("<img>")), "");
  EXPECT_EQ(vocab_.piece(id_of("user")), "user");
}

TEST_F(VocabTest, SpecialTokensAreFoundByTheirWholeText) {
  EXPECT_EQ(vocab_.find_special("<img>"), id_of("<img>"));
  EXPECT_EQ(vocab_.find_special("<IMG_CONTEXT>"), id_of("<IMG_CONTEXT>"));
  EXPECT_EQ(vocab_.find_special("<nothing>"), std::nullopt);
  EXPECT_EQ(vocab_.find_special("<img></img>"), std::nullopt);
  EXPECT_EQ(vocab_.find_special(""), std::nullopt);
}

TEST_F(VocabTest, KnowsWhatEndsAnAnswer) {
  EXPECT_TRUE(vocab_.is_end_of_generation(id_of("<|im_end|>")));
  EXPECT_TRUE(vocab_.is_end_of_generation(id_of("<|endoftext|>")));
  EXPECT_FALSE(vocab_.is_end_of_generation(id_of("user")));
  EXPECT_FALSE(vocab_.is_end_of_generation(id_of("<img>")));
  EXPECT_EQ(vocab_.bos_text(), "<|endoftext|>");
  EXPECT_EQ(vocab_.eos_text(), "<|im_end|>");
}

TEST_F(VocabTest, LeadingBosOnlyWhereTheModelWantsOne) {
  EXPECT_EQ(vocab_.leading_bos(), std::nullopt);
  const LanguageModel other = load({.set_keys = {{"tokenizer.ggml.add_bos_token", true}}});
  EXPECT_EQ(other.vocab().leading_bos(), id_of("<|endoftext|>"));
  // tokenize() adds none itself.
  EXPECT_THAT(other.vocab().tokenize("user", true), testing::ElementsAre(id_of("user")));
}

TEST_F(VocabTest, ATokenLongerThanTheFirstBufferIsWhole) {
  test::TinyVocab vocab = test::make_tiny_vocab();
  const std::string word(5000, 'w');
  vocab.tokens.back() = word;
  vocab.types.back() = 1;
  const LanguageModel model = load({.set_keys = {{"tokenizer.ggml.tokens", vocab.tokens},
                                                 {"tokenizer.ggml.token_type", vocab.types}}});
  EXPECT_EQ(model.vocab().piece(static_cast<Token>(vocab.tokens.size()) - 1), word);
}

}  // namespace
}  // namespace plateau::model

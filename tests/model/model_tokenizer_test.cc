// The tokenizer's metadata.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/model_config_fixture.h"

namespace plateau::model {
namespace {

TEST_F(ModelConfigTest, TheTokenizerIsChecked) {
  const test::TinyVocab vocab = test::make_tiny_vocab();
  const auto n = static_cast<uint32_t>(vocab.tokens.size());
  const auto tokens_with = [&](size_t i, const std::string& text) {
    std::vector<std::string> tokens = vocab.tokens;
    tokens[i] = text;
    return tokens;
  };
  const std::string tokens = "tokenizer.ggml.tokens", merges = "tokenizer.ggml.merges",
                    types = "tokenizer.ggml.token_type", kind = "tokenizer.ggml.model",
                    pre = "tokenizer.ggml.pre", eos = "tokenizer.ggml.eos_token_id",
                    bos = "tokenizer.ggml.bos_token_id", add_bos = "tokenizer.ggml.add_bos_token";
  const auto corrupt = ErrorCode::kCorrupt;
  std::vector<Case> cases = {
      {"no tokens", {.omit_keys = {tokens}}, corrupt, {tokens, std::to_string(n), "got 0"}},
      {"0 tokens",
       {.set_keys = {{tokens, std::vector<std::string>{}}}},
       corrupt,
       {tokens, "got 0"}},
      {"too few tokens",
       {.set_keys = {{tokens, std::vector<std::string>{"a", "b"}}}},
       corrupt,
       {tokens, std::to_string(n), "got 2"}},
      {"a repeated token",
       {.set_keys = {{tokens, tokens_with(5, vocab.tokens[6])}}},
       corrupt,
       {tokens, "differ", vocab.tokens[6]}},
      {"tokens as integers",
       {.set_keys = {{tokens, std::vector<int32_t>(n, 1)}}},
       corrupt,
       {tokens, "strings"}},
      {"tokens as one string", {.set_keys = {{tokens, "a"}}}, corrupt, {tokens, "array", "str"}},
      {"no types", {.omit_keys = {types}}, corrupt, {types, std::to_string(n), "got 0"}},
      {"too few types",
       {.set_keys = {{types, std::vector<int32_t>(n - 1, 1)}}},
       corrupt,
       {types, std::to_string(n), std::to_string(n - 1)}},
      {"types as floats",
       {.set_keys = {{types, std::vector<float>(n, 1)}}},
       corrupt,
       {types, "integers"}},
      {"types as strings",
       {.set_keys = {{types, std::vector<std::string>(n, "1")}}},
       corrupt,
       {types, "integers"}},
      {"no merges", {.omit_keys = {merges}}, corrupt, {merges, "none"}},
      {"merges as integers",
       {.set_keys = {{merges, std::vector<int32_t>{1}}}},
       corrupt,
       {merges, "strings"}},
      {"a merge without a space",
       {.set_keys = {{merges, std::vector<std::string>{"ab"}}}},
       corrupt,
       {merges, "pairs", "ab"}},
      {"an empty merge",
       {.set_keys = {{merges, std::vector<std::string>{""}}}},
       corrupt,
       {merges, "pairs"}},
      {"no model", {.omit_keys = {kind}}, corrupt, {kind, "string", "none"}},
      {"no pre-tokenizer", {.omit_keys = {pre}}, corrupt, {pre, "string", "none"}},
      {"pre-tokenizer of another type",
       {.set_keys = {{pre, uint32_t{1}}}},
       corrupt,
       {pre, "string", "u32"}},
      {"no eos", {.omit_keys = {eos}}, corrupt, {eos, "integer", "none"}},
      {"bos wanted, none given",
       {.set_keys = {{add_bos, true}}, .omit_keys = {bos}},
       corrupt,
       {bos, "integer", "none"}},
      {"add_bos of another type",
       {.set_keys = {{add_bos, uint32_t{1}}}},
       corrupt,
       {add_bos, "bool", "u32"}},
      {"template of another type",
       {.set_keys = {{"tokenizer.chat_template", uint32_t{1}}}},
       corrupt,
       {"tokenizer.chat_template", "string", "u32"}},
  };
  for (const std::string name :
       {"llama", "bert", "t5", "rwkv", "none", "no_vocab", "plamo2", "gemma4", "bogus", ""}) {
    cases.push_back({name,
                     {.set_keys = {{kind, name}}},
                     ErrorCode::kUnsupported,
                     {kind, "gpt2", "got " + name}});
  }
  for (const char* name : {"bos", "eos", "padding", "unknown", "eot", "separator"}) {
    const std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
    const std::string last = "between 0 and " + std::to_string(n - 1);
    cases.push_back({key, {.set_keys = {{key, n}}}, corrupt, {key, last, std::to_string(n)}});
    cases.push_back({key, {.set_keys = {{key, kMax}}}, corrupt, {key, last}});
    cases.push_back({key, {.set_keys = {{key, int32_t{-1}}}}, corrupt, {key, last, "-1"}});
    cases.push_back({key, {.set_keys = {{key, "one"}}}, corrupt, {key, "integer", "str"}});
  }
  expect_refused(kQwen3, cases);
}

TEST_F(ModelConfigTest, MoreTokensThanRowsAreRefused) {
  const int64_t n = static_cast<int64_t>(test::make_tiny_vocab().tokens.size());
  for (const int64_t rows : {n - 32, n + 32}) {
    expect_error(
        [&] {
          read(kQwen3, {.reshape_tensors = {{"token_embd.weight", {64, rows}},
                                            {"output.weight", {64, rows}}}});
        },
        ErrorCode::kCorrupt,
        {path_, "tokenizer.ggml.tokens", std::to_string(rows), std::to_string(n)});
  }
}
}  // namespace
}  // namespace plateau::model

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "model/vocab.h"
#include "plateau/engine.h"
#include "support/llama_oracle.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau {
namespace {

// A text model of each architecture, alone: llama.cpp's answer, also when the prompt is compressed
// to a budget that holds it.
TEST(EngineText, AnswersAsLlamaCppDoes) {
  for (const std::string arch : {"llama", "qwen2", "qwen2vl", "qwen3"}) {
    SCOPED_TRACE(arch);
    const test::TempDir dir;
    // llama.cpp does not read the epsilon of qwen2vl's norms (tests/graph/decoder_test.cc).
    test::write_tiny_text({.arch = arch, .n_layer = 2, .rms_eps = 1e-30F, .qk_gain = 1.5F},
                          dir.file("text.gguf"));
    EngineOptions options;
    options.model_path = dir.file("text.gguf");
    options.n_threads = 1;
    Engine text_engine = Engine::open(options);
    Request request;
    request.messages = {{"user", {TextPart{"What number is on the cat?"}}}};
    request.max_new_tokens = 12;
    const Answer answer = text_engine.run(request);

    test::LlamaOracle oracle(dir.file("text.gguf"));
    oracle.decode(
        oracle.tokenize("<|im_start|>user\nWhat number is on the cat?<|im_end|>\n"
                        "<|im_start|>assistant\n",
                        /*add_special=*/false, /*parse_special=*/true));
    std::vector<int32_t> want = oracle.greedy(12);
    const auto end = std::find_if(want.begin(), want.end(), [&](int32_t token) {
      return llama_vocab_is_eog(oracle.vocab(), token);
    });
    want.erase(end, want.end());
    const model::Vocab vocab(oracle.vocab());
    Utf8Stream stream;
    std::string want_text;
    for (const int32_t token : want) want_text += stream.push(vocab.piece(token));
    EXPECT_EQ(answer.text, want_text + stream.flush());
    EXPECT_EQ(answer.usage.decode_tokens,
              static_cast<int64_t>(std::min<size_t>(want.size() + 1, 12)));
    request.kv = {.budget = 200, .block = 7};
    EXPECT_EQ(text_engine.run(request).text, answer.text);
  }
}

}  // namespace
}  // namespace plateau

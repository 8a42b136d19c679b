#include "measure_mtmd.h"

#include <vector>

#include "base/memory.h"
#include "media/image.h"
#include "read_picture.h"
#include "support/llama_oracle.h"
#include "support/mtmd_oracle.h"

namespace plateau {
namespace {

constexpr int kMicroBatch = 512;

}  // namespace

MtmdRun measure_mtmd(const EngineOptions& options, const std::string& picture_path,
                     const std::string& question, int64_t max_tokens) {
  AnonWatch anon;
  test::MtmdOracle mtmd(
      options.model_path, options.mmproj_path,
      {.n_threads = options.n_threads, .image_max_tokens = static_cast<int>(max_tokens)});
  const std::string prompt = "<|im_start|>user\n" + test::MtmdOracle::marker() + question +
                             "<|im_end|>\n<|im_start|>assistant\n";
  const media::ImageInfo info = media::probe_image(picture_path, {});
  const test::RgbPicture picture =
      read_picture(picture_path, static_cast<int>(info.width), static_cast<int>(info.height));
  const auto fed = mtmd.feed(prompt, {&picture, 1});
  const std::vector<float> rows = std::move(mtmd.encode(picture).front());
  test::LlamaOracle llama(options.model_path, {.n_ctx = static_cast<int>(fed.tokens.size()) + 64,
                                               .n_batch = kMicroBatch,
                                               .n_threads = options.n_threads});
  std::vector<int32_t> text;
  std::vector<test::LlamaOracle::Position> visual;
  const auto run_pending = [&] {
    if (!text.empty()) llama.decode(text);
    if (!visual.empty()) llama.decode_embeddings_at(rows, visual);
    text.clear();
    visual.clear();
  };
  for (const auto& token : fed.tokens) {
    const bool is_text = token.id >= 0;
    if (is_text ? !visual.empty() : !text.empty()) run_pending();
    if (is_text) {
      text.push_back(token.id);
    } else {
      visual.push_back({token.t, token.h, token.w});
    }
  }
  run_pending();
  llama.greedy(1);
  return {static_cast<int64_t>(fed.tokens.size()), anon.peak_bytes()};
}

}  // namespace plateau

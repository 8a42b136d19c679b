#include "engine/mtmd_harness.h"

#include <filesystem>
#include <span>

#include "engine/embedding_cache.h"
#include "engine/media_plan.h"
#include "engine/prefill.h"
#include "engine/sequence.h"

namespace plateau::test {
namespace {

const std::string kQuestion = "What is on the moon?";

}  // namespace

MtmdPair::MtmdPair(const TinyTextModel& text) { write_tiny_text(text, text_); }

MtmdPair::MtmdPair(const TinyTextModel& text, const TinyLlava& vision) : MtmdPair(text) {
  write_tiny_llava(vision, mmproj_);
}

MtmdPair::MtmdPair(const TinyTextModel& text, const TinyIdefics3& vision) : MtmdPair(text) {
  write_tiny_idefics3(vision, mmproj_);
}

EngineOptions MtmdPair::options() const {
  EngineOptions options;
  options.model_path = text_;
  options.mmproj_path = mmproj_;
  options.n_threads = 1;
  return options;
}

std::string MtmdPair::picture(int width, int height) const {
  const std::string path = dir_.file(std::to_string(width) + "x" + std::to_string(height) + ".png");
  if (!std::filesystem::exists(path)) {
    media::testing::write_png(media::testing::noise(width, height), path);
  }
  return path;
}

Request MtmdPair::ask(const std::vector<std::pair<int, int>>& sizes) const {
  Request request;
  request.max_new_tokens = 4;
  Message& message = request.messages.emplace_back(Message{"user", {}});
  for (const auto& [width, height] : sizes) {
    message.content.emplace_back(ImagePart{picture(width, height)});
  }
  message.content.emplace_back(TextPart{kQuestion});
  return request;
}

Prefilled MtmdPair::ours(const Request& request, CacheType cache) const {
  EngineOptions engine_options = options();
  engine_options.cache_type_k = engine_options.cache_type_v = cache;
  engine::LoadedModel loaded(engine_options, {});
  const engine::RequestPlan plan = engine::plan_request(request, loaded);
  const engine::PromptTokens tokens(plan.prompt, plan.protection);
  engine::Sequence sequence(loaded.language_model, loaded.backends,
                            {.n_arena = plan.budget.n_arena,
                             .cache_type_k = cache,
                             .cache_type_v = cache,
                             .policy = nullptr,
                             .policy_options = {}},
                            tokens);
  engine::VisualSource visuals(*loaded.encoder, plan.images, engine::to_limits(request.image),
                               /*encoder_batch=*/1);
  Prefilled result;
  for (const engine::Piece& piece : plan.prompt.pieces()) {
    if (piece.kind == engine::PieceKind::kVisual) {
      result.tokens.insert(result.tokens.end(), static_cast<size_t>(piece.n_tokens()), -1);
    } else {
      result.tokens.insert(result.tokens.end(), piece.tokens.begin(), piece.tokens.end());
    }
  }
  result.logits =
      engine::prefill(plan.prompt, plan.blocks, plan.budget, sequence, &visuals, [](int, int64_t) {
      }).logits;
  return result;
}

Prefilled MtmdPair::llamas(const std::vector<std::pair<int, int>>& sizes) const {
  MtmdOracle mtmd(text_, mmproj_);
  LlamaOracle llama(text_);
  std::string prompt = "<|im_start|>user\n";
  std::vector<RgbPicture> pictures;
  std::vector<std::vector<float>> embeddings;
  for (const auto& [width, height] : sizes) {
    prompt += MtmdOracle::marker();
    const media::Rgb8 noise = media::testing::noise(width, height);
    pictures.push_back({.width = width, .height = height, .pixels = noise.pixels});
    for (std::vector<float>& chunk : mtmd.encode(pictures.back())) {
      embeddings.push_back(std::move(chunk));
    }
  }
  prompt += kQuestion + "<|im_end|>\n<|im_start|>assistant\n";
  Prefilled result;
  auto next = embeddings.begin();
  for (const MtmdOracle::Chunk& chunk : mtmd.chunks(prompt, pictures)) {
    if (chunk.n_image_tokens > 0) {
      result.tokens.insert(result.tokens.end(), static_cast<size_t>(chunk.n_image_tokens), -1);
      result.logits = llama.decode_embeddings(*next++);
    } else {
      result.tokens.insert(result.tokens.end(), chunk.tokens.begin(), chunk.tokens.end());
      result.logits = llama.decode(chunk.tokens);
    }
  }
  return result;
}

MtmdPair llava_pair(TinyLlava vision) { return {{.arch = "qwen2", .qk_gain = 2}, vision}; }

MtmdPair smolvlm_pair(TinyIdefics3 vision) {
  return {{.arch = "llama", .qk_gain = 2, .extra_tokens = idefics3_tokens()}, vision};
}

}  // namespace plateau::test

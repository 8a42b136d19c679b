#include "engine/mtmd_harness.h"

#include <filesystem>
#include <fstream>
#include <span>

#include "engine/embedding_cache.h"
#include "engine/media_plan.h"
#include "engine/prefill.h"
#include "engine/sequence.h"

namespace plateau::test {
namespace {

const std::string kQuestion = "What is on the moon?";
// Of a family without a size of its own: the picture's.
constexpr MtmdOracleOptions kNativeSizes = {
    .n_threads = 1, .image_min_tokens = 1, .image_max_tokens = 1 << 16};

/// Of a film of noise: the second one is the first one's negative.
media::Rgb8 frame(int i, int width, int height) {
  media::Rgb8 result = media::testing::noise(width, height);
  if (i == 1) {
    for (uint8_t& value : result.pixels) value = static_cast<uint8_t>(255 - value);
  }
  return result;
}

}  // namespace

MtmdPair::MtmdPair(const TinyTextModel& text) : has_mrope_(text.arch == "qwen2vl") {
  write_tiny_text(text, text_);
}

MtmdPair::MtmdPair(const TinyTextModel& text, const TinyLlava& vision) : MtmdPair(text) {
  write_tiny_llava(vision, mmproj_);
}

MtmdPair::MtmdPair(const TinyTextModel& text, const TinyIdefics3& vision) : MtmdPair(text) {
  write_tiny_idefics3(vision, mmproj_);
}

MtmdPair::MtmdPair(const TinyTextModel& text, const TinyQwenVision& vision) : MtmdPair(text) {
  write_tiny_qwen_vision(vision, mmproj_);
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
  MtmdOracle mtmd(text_, mmproj_, has_mrope_ ? kNativeSizes : MtmdOracleOptions{});
  LlamaOracle llama(text_);
  std::string prompt = "<|im_start|>user\n";
  std::vector<RgbPicture> pictures;
  std::vector<std::vector<float>> embeddings;
  std::vector<std::pair<int, int>> grids;
  for (const auto& [width, height] : sizes) {
    prompt += MtmdOracle::marker();
    const media::Rgb8 noise = media::testing::noise(width, height);
    pictures.push_back({.width = width, .height = height, .pixels = noise.pixels});
    for (std::vector<float>& chunk : mtmd.encode(pictures.back())) {
      embeddings.push_back(std::move(chunk));
      grids.push_back(has_mrope_ ? mtmd.token_grid(width, height) : std::pair(1, 1));
    }
  }
  prompt += kQuestion + "<|im_end|>\n<|im_start|>assistant\n";
  Prefilled result;
  size_t next = 0;
  for (const MtmdOracle::Chunk& chunk : mtmd.chunks(prompt, pictures)) {
    if (chunk.n_image_tokens > 0) {
      result.tokens.insert(result.tokens.end(), static_cast<size_t>(chunk.n_image_tokens), -1);
      result.logits = feed(llama, embeddings[next], grids[next]);
      ++next;
    } else {
      result.tokens.insert(result.tokens.end(), chunk.tokens.begin(), chunk.tokens.end());
      result.logits = llama.decode(chunk.tokens);
    }
  }
  return result;
}

std::vector<float> MtmdPair::feed(LlamaOracle& llama, std::span<const float> embeddings,
                                  std::pair<int, int> grid) const {
  if (!has_mrope_) return llama.decode_embeddings(embeddings);
  const int32_t start = llama.next_pos();
  std::vector<LlamaOracle::Position> positions;
  for (int row = 0; row < grid.first; ++row) {
    for (int col = 0; col < grid.second; ++col) {
      positions.push_back({start, start + row, start + col});
    }
  }
  return llama.decode_embeddings_at(embeddings, positions);
}

Request MtmdPair::ask_film(int width, int height) const {
  Request request;
  request.max_new_tokens = 4;
  std::string list;
  for (int i = 0; i < 2; ++i) {
    const std::string path = dir_.file("frame" + std::to_string(i) + ".png");
    media::testing::write_png(frame(i, width, height), path);
    list += path + "\n";
  }
  std::ofstream(dir_.file("film.txt")) << list;
  request.messages = {{"user", {VideoPart{dir_.file("film.txt"), true}, TextPart{kQuestion}}}};
  return request;
}

Prefilled MtmdPair::llamas_film(int width, int height) const {
  MtmdOracle mtmd(text_, mmproj_, kNativeSizes);
  LlamaOracle llama(text_);
  std::vector<RgbPicture> frames;
  for (int i = 0; i < 2; ++i) {
    frames.push_back({width, height, frame(i, width, height).pixels});
  }
  const auto say = [&](const std::string& text) {
    return llama.decode(llama.tokenize(text, /*add_special=*/false, /*parse_special=*/true));
  };
  say("<|im_start|>user\n<|vision_start|>");
  feed(llama, mtmd.encode_film(frames)[0], mtmd.token_grid(width, height));
  return {{}, say("<|vision_end|>" + kQuestion + "<|im_end|>\n<|im_start|>assistant\n")};
}

MtmdPair llava_pair(TinyLlava vision) { return {{.arch = "qwen2", .qk_gain = 2}, vision}; }

MtmdPair smolvlm_pair(TinyIdefics3 vision) {
  return {{.arch = "llama", .qk_gain = 2, .extra_tokens = idefics3_tokens()}, vision};
}

// llama.cpp v0.4.0 does not read qwen2vl's RMS epsilon: one that changes nothing.
MtmdPair qwen_pair() {
  return {{.arch = "qwen2vl", .n_layer = 3, .rms_eps = 1e-30F, .qk_gain = 2}, TinyQwenVision{}};
}

}  // namespace plateau::test

// A tiny pair of files that llama.cpp's library encodes for, the same request through the engine's
// parts and through llama.cpp.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/request_plan.h"
#include "media/fixtures.h"
#include "plateau/engine.h"
#include "support/llama_oracle.h"
#include "support/mtmd_oracle.h"
#include "support/synth.h"
#include "support/temp_dir.h"

namespace plateau::test {

/// Logits after the prompt, and what the prompt was.
struct Prefilled {
  std::vector<int32_t> tokens;  // -1: a picture's
  std::vector<float> logits;
};

class MtmdPair {
 public:
  MtmdPair(const TinyTextModel& text, const TinyLlava& vision);
  MtmdPair(const TinyTextModel& text, const TinyIdefics3& vision);
  MtmdPair(const TinyTextModel& text, const TinyQwenVision& vision);

  EngineOptions options() const;
  /// A picture of noise on disc, the same for the same size.
  std::string picture(int width, int height) const;
  /// Pictures of these sizes, one after the other, then a question.
  Request ask(const std::vector<std::pair<int, int>>& sizes) const;

  Prefilled ours(const Request& request, CacheType cache = CacheType::kF16) const;
  /// As llama.cpp's own tools feed it: text as tokens, then each part of a picture as one batch.
  Prefilled llamas(const std::vector<std::pair<int, int>>& sizes) const;
  /// Two frames of noise of one size, as one slice of a film. REQUIRES: a Qwen2.5-VL pair.
  Request ask_film(int width, int height) const;
  Prefilled llamas_film(int width, int height) const;

  const std::string& text_path() const { return text_; }
  const std::string& mmproj_path() const { return mmproj_; }
  const TempDir& dir() const { return dir_; }

 private:
  explicit MtmdPair(const TinyTextModel& text);

  /// One unit of a picture, at M-RoPE positions where the model has them.
  std::vector<float> feed(LlamaOracle& llama, std::span<const float> embeddings,
                          std::pair<int, int> grid) const;

  TempDir dir_;
  bool has_mrope_ = false;
  std::string text_ = dir_.file("text.gguf"), mmproj_ = dir_.file("mmproj.gguf");
};

/// LLaVA as CLIP has it, on qwen2.
MtmdPair llava_pair(TinyLlava vision = {});
/// SmolVLM, on llama.
MtmdPair smolvlm_pair(TinyIdefics3 vision = {});
/// Qwen2.5-VL, which the engine encodes itself, on qwen2vl.
MtmdPair qwen_pair();

}  // namespace plateau::test

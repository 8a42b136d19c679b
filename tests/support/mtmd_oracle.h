// The pinned llama.cpp's multimodal library on the same files: prompt chunks and tile embeddings.
// CPU only. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "llama.h"
#include "mtmd.h"
#include "support/tensor_tap.h"

namespace plateau::test {

/// Interleaved RGB, rows top to bottom.
struct RgbPicture {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels = {};  // [height][width][3]
};

/// A picture of noise, the same for the same seed.
RgbPicture random_picture(int width, int height, uint64_t seed);

struct MtmdOracleOptions {
  int n_threads = 1;
  bool flash_attn = true;  // attention with K and V rounded to f16; otherwise in f32
  // Of a picture that becomes native-size tokens; 0: what mtmd thinks best.
  int image_min_tokens = 0;
  int image_max_tokens = 0;
};

class MtmdOracle {
 public:
  /// A piece of a prompt in feeding order: text tokens, or one tile (or thumbnail) of a picture.
  struct Chunk {
    std::vector<int32_t> tokens;  // empty for a tile
    int n_image_tokens = 0;       // 0 for text
  };

  /// Needs the text model, too: mtmd takes the vocabulary and n_embd from it.
  /// Errors: kCorrupt, with mtmd's own last words.
  MtmdOracle(const std::string& text_path, const std::string& mmproj_path,
             const MtmdOracleOptions& options = {});

  /// What stands for a picture in a prompt.
  static std::string marker() { return mtmd_default_marker(); }

  /// The prompt as mtmd feeds it; special tokens in the text are parsed.
  std::vector<Chunk> chunks(const std::string& prompt, std::span<const RgbPicture> pictures) const;

  /// Embeddings of one tile, [n_embd, tokens per tile]. mtmd adds an overview only to pictures
  /// larger than a tile, so a picture of exactly `size` x `size` is one chunk and is not resized.
  /// REQUIRES: size is the file's image_size.
  std::vector<float> encode_tile(std::span<const uint8_t> rgb, int size);

  /// Embeddings of all tiles of a picture in feeding order, for InternVL the overview last.
  std::vector<std::vector<float>> encode(const RgbPicture& picture);

  /// Embeddings of frames of a film, which Qwen's towers take in pairs: one entry per pair.
  std::vector<std::vector<float>> encode_film(std::span<const RgbPicture> frames);

  /// The token grid that mtmd makes of a picture of this size: rows and columns.
  std::pair<int, int> token_grid(int width, int height) const;

  /// A prompt token by token as mtmd_helper_eval_chunks feeds it: positions (t, h, w) of a model
  /// with M-RoPE, and where text would go on.
  struct Fed {
    struct Token {
      int32_t id = -1;  // -1: a picture's
      int32_t t = 0;
      int32_t h = 0;
      int32_t w = 0;
      bool operator==(const Token&) const = default;
    };
    std::vector<Token> tokens;
    int32_t next_position = 0;
  };
  Fed feed(const std::string& prompt, std::span<const RgbPicture> pictures) const;

  int n_embd() const { return llama_model_n_embd_inp(model_.get()); }

  /// Captures of the vision graph since the last encode call began.
  TensorTap& tap() { return *tap_; }

 private:
  struct ModelDeleter {
    void operator()(llama_model* model) const { llama_model_free(model); }
  };
  mtmd::input_chunks_ptr tokenize(const std::string& prompt, std::span<const RgbPicture> pictures,
                                  bool is_film = false) const;
  std::vector<std::vector<float>> encode(const mtmd::input_chunks_ptr& input);

  std::unique_ptr<TensorTap> tap_;  // outlives the context, which holds its address
  std::unique_ptr<llama_model, ModelDeleter> model_;
  mtmd::context_ptr context_;
};

}  // namespace plateau::test

#include "support/mtmd_oracle.h"

#include <cstddef>
#include <utility>

#include "base/check.h"
#include "support/log_capture.h"
#include "support/synth.h"

namespace plateau::test {

RgbPicture random_picture(int width, int height, uint64_t seed) {
  RgbPicture picture{.width = width, .height = height};
  std::vector<float> noise(3 * static_cast<size_t>(width) * static_cast<size_t>(height));
  WeightStream("picture", seed).fill(noise, /*mean=*/128.0F, /*deviation=*/70.0F);  // 7 to 249
  for (const float value : noise) picture.pixels.push_back(static_cast<uint8_t>(value));
  return picture;
}

MtmdOracle::MtmdOracle(const std::string& text_path, const std::string& mmproj_path,
                       const MtmdOracleOptions& options)
    : tap_(std::make_unique<TensorTap>()) {
  capture_llama_logs();
  llama_backend_init();
  llama_model_params model_params = llama_model_default_params();
  model_params.n_gpu_layers = 0;
  model_.reset(llama_model_load_from_file(text_path.c_str(), model_params));
  if (model_ == nullptr) {
    throw_error(ErrorCode::kCorrupt,
                "[mtmd_oracle] expected a model that llama.cpp loads, got {}: {}", text_path,
                captured_llama_log());
  }

  mtmd_context_params params = mtmd_context_params_default();
  params.use_gpu = false;
  params.print_timings = false;
  params.warmup = false;
  params.n_threads = options.n_threads;
  params.flash_attn_type =
      options.flash_attn ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  if (options.image_min_tokens > 0) params.image_min_tokens = options.image_min_tokens;
  if (options.image_max_tokens > 0) params.image_max_tokens = options.image_max_tokens;
  params.cb_eval = TensorTap::callback;
  params.cb_eval_user_data = tap_.get();
  context_.reset(mtmd_init_from_file(mmproj_path.c_str(), model_.get(), params));
  if (context_ == nullptr) {
    throw_error(ErrorCode::kCorrupt,
                "[mtmd_oracle] expected a projector that mtmd loads, got {}: {}", mmproj_path,
                captured_llama_log());
  }
}

mtmd::input_chunks_ptr MtmdOracle::tokenize(const std::string& prompt,
                                            std::span<const RgbPicture> pictures,
                                            bool is_film) const {
  std::vector<mtmd::bitmap_ptr> owned;
  std::vector<const mtmd_bitmap*> bitmaps;
  for (const RgbPicture& picture : pictures) {
    PLATEAU_CHECK(picture.pixels.size() ==
                  3 * static_cast<size_t>(picture.width) * static_cast<size_t>(picture.height));
    owned.emplace_back(mtmd_bitmap_init(static_cast<uint32_t>(picture.width),
                                        static_cast<uint32_t>(picture.height),
                                        picture.pixels.data()));
    mtmd_bitmap_set_mergeable(owned.back().get(), is_film);
    bitmaps.push_back(owned.back().get());
  }
  const mtmd_input_text text = {prompt.data(), prompt.size(), /*add_special=*/false,
                                /*parse_special=*/true};
  mtmd::input_chunks_ptr chunks(mtmd_input_chunks_init());
  const int status =
      mtmd_tokenize(context_.get(), chunks.get(), &text, bitmaps.data(), bitmaps.size());
  if (status != 0) {
    throw_error(ErrorCode::kInvalidArgument,
                "[mtmd_oracle] expected one marker for each picture, got status {}: {}", status,
                captured_llama_log());
  }
  return chunks;
}

std::vector<MtmdOracle::Chunk> MtmdOracle::chunks(const std::string& prompt,
                                                  std::span<const RgbPicture> pictures) const {
  const mtmd::input_chunks_ptr input = tokenize(prompt, pictures);
  std::vector<Chunk> result;
  for (size_t i = 0; i < mtmd_input_chunks_size(input.get()); ++i) {
    const mtmd_input_chunk* chunk = mtmd_input_chunks_get(input.get(), i);
    Chunk& out = result.emplace_back();
    if (mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_TEXT) {
      size_t n = 0;
      const llama_token* tokens = mtmd_input_chunk_get_tokens_text(chunk, &n);
      out.tokens.assign(tokens, tokens + n);
    } else {
      out.n_image_tokens = static_cast<int>(mtmd_input_chunk_get_n_tokens(chunk));
    }
  }
  return result;
}

MtmdOracle::Fed MtmdOracle::feed(const std::string& prompt,
                                 std::span<const RgbPicture> pictures) const {
  const mtmd::input_chunks_ptr input = tokenize(prompt, pictures);
  Fed fed;
  int32_t& next = fed.next_position;
  for (size_t i = 0; i < mtmd_input_chunks_size(input.get()); ++i) {
    const mtmd_input_chunk* chunk = mtmd_input_chunks_get(input.get(), i);
    if (mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_TEXT) {
      size_t n = 0;
      const llama_token* ids = mtmd_input_chunk_get_tokens_text(chunk, &n);
      for (size_t j = 0; j < n; ++j, ++next) fed.tokens.push_back({ids[j], next, next, next});
      continue;
    }
    const mtmd_image_tokens* picture = mtmd_input_chunk_get_tokens_image(chunk);
    for (size_t j = 0; j < mtmd_image_tokens_get_n_tokens(picture); ++j) {
      const mtmd_decoder_pos p = mtmd_image_tokens_get_decoder_pos(picture, next, j);
      fed.tokens.push_back(
          {-1, static_cast<int32_t>(p.t), static_cast<int32_t>(p.y), static_cast<int32_t>(p.x)});
    }
    next += mtmd_input_chunk_get_n_pos(chunk);
  }
  return fed;
}

std::vector<float> MtmdOracle::encode_tile(std::span<const uint8_t> rgb, int size) {
  std::vector<std::vector<float>> tiles =
      encode({.width = size, .height = size, .pixels = {rgb.begin(), rgb.end()}});
  PLATEAU_CHECK(tiles.size() == 1);
  return std::move(tiles.front());
}

std::vector<std::vector<float>> MtmdOracle::encode(const RgbPicture& picture) {
  return encode(tokenize(marker(), {&picture, 1}));
}

std::vector<std::vector<float>> MtmdOracle::encode_film(std::span<const RgbPicture> frames) {
  std::string prompt;
  for (size_t i = 0; i < frames.size(); ++i) prompt += marker();
  return encode(tokenize(prompt, frames, /*is_film=*/true));
}

std::pair<int, int> MtmdOracle::token_grid(int width, int height) const {
  const RgbPicture picture = {
      .width = width,
      .height = height,
      .pixels = std::vector<uint8_t>(3 * static_cast<size_t>(width) * static_cast<size_t>(height))};
  const mtmd::input_chunks_ptr input = tokenize(marker(), {&picture, 1});
  for (size_t i = 0; i < mtmd_input_chunks_size(input.get()); ++i) {
    const mtmd_input_chunk* chunk = mtmd_input_chunks_get(input.get(), i);
    if (mtmd_input_chunk_get_type(chunk) != MTMD_INPUT_CHUNK_TYPE_IMAGE) continue;
    const mtmd_image_tokens* tokens = mtmd_input_chunk_get_tokens_image(chunk);
    const size_t n = mtmd_image_tokens_get_n_tokens(tokens);
    const mtmd_decoder_pos last = mtmd_image_tokens_get_decoder_pos(tokens, /*pos_0=*/0, n - 1);
    return {static_cast<int>(last.y) + 1, static_cast<int>(last.x) + 1};
  }
  return {0, 0};
}

std::vector<std::vector<float>> MtmdOracle::encode(const mtmd::input_chunks_ptr& input) {
  tap_->clear();
  std::vector<std::vector<float>> result;
  for (size_t i = 0; i < mtmd_input_chunks_size(input.get()); ++i) {
    const mtmd_input_chunk* chunk = mtmd_input_chunks_get(input.get(), i);
    if (mtmd_input_chunk_get_type(chunk) != MTMD_INPUT_CHUNK_TYPE_IMAGE) continue;
    if (mtmd_encode_chunk(context_.get(), chunk) != 0) {
      throw_error(ErrorCode::kInternal, "[mtmd_oracle] expected mtmd to encode a tile, got: {}",
                  captured_llama_log());
    }
    const float* values = mtmd_get_output_embd(context_.get());
    result.emplace_back(
        values, values + mtmd_input_chunk_get_n_tokens(chunk) * static_cast<size_t>(n_embd()));
  }
  return result;
}

}  // namespace plateau::test

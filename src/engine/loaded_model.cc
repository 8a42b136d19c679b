#include "engine/loaded_model.h"

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"

namespace plateau::engine {
namespace {

// Patches encoded at once by default: enough to keep the cores busy, and one tile of a large tower.
constexpr int kDefaultEncoderPatches = 1024;

EngineOptions validated(const EngineOptions& options) {
  check_engine_options(options);
  return options;
}

/// Throws kUnsupported unless the two files can belong together.
void check_pair(const EngineOptions& options, const model::ModelConfig& text) {
  const model::VisionConfig vision =
      model::read_vision_config(model::GgufFile::open(options.mmproj_path));
  if (text.has_mrope() != vision.has_mrope()) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected the projector that {} was trained with, got {}, whose pictures {} "
                "positions of three components (M-RoPE); the two files do not belong together",
                options.mmproj_path, options.model_path, vision.projector_type,
                vision.has_mrope() ? "have" : "have no");
  }
  if (vision.n_embd_out != text.n_embd) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected a projector to width {} (that of {}), got {}; the two files do not "
                "belong together",
                options.mmproj_path, text.n_embd, options.model_path, vision.n_embd_out);
  }
}

}  // namespace

void check_engine_options(const EngineOptions& options) {
  if (options.n_threads < 0 || options.n_threads > 512) {
    throw_error(ErrorCode::kInvalidArgument, "[-t] expected 0 to 512 threads, got {}",
                options.n_threads);
  }
  if (options.encoder_batch < 0 || options.encoder_batch > 256) {
    throw_error(ErrorCode::kInvalidArgument, "[--encoder-batch] expected 0 to 256 tiles, got {}",
                options.encoder_batch);
  }
  if (options.embedding_cache_bytes < 0) {
    throw_error(ErrorCode::kInvalidArgument, "[--embedding-cache] expected 0 or more bytes, got {}",
                options.embedding_cache_bytes);
  }
  if (options.encoder_memory < 0) {
    throw_error(ErrorCode::kInvalidArgument, "[--encoder-memory] expected 0 or more bytes, got {}",
                options.encoder_memory);
  }
}

LoadedModel::LoadedModel(const EngineOptions& engine_options,
                         const std::function<bool(float)>& on_progress, model::WeightUse use)
    : options(validated(engine_options)),
      backends(model::Device::find(options.device),
               options.n_threads > 0 ? options.n_threads : model::usable_cores()),
      language_model(
          model::LanguageModel::load(options.model_path, {.device = backends.device(),
                                                          .n_gpu_layers = options.n_gpu_layers,
                                                          .on_progress = on_progress,
                                                          .use = use})) {
  if (!options.mmproj_path.empty()) {
    check_pair(options, language_model.config());
    encoder.emplace(options.mmproj_path, backends, use, &language_model);
  }
  const std::string& source =
      options.chat_template.empty() ? language_model.chat_template() : options.chat_template;
  if (source.empty()) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected key tokenizer.chat_template, found none; try --chat-template-file",
                options.model_path);
  }
  if (!is_valid_utf8(source)) {
    throw_error(ErrorCode::kCorrupt, "[chat template] expected text in UTF-8, got other bytes");
  }
  chat_template.emplace(source, language_model.vocab().bos_text(),
                        language_model.vocab().eos_text());
}

int LoadedModel::encoder_batch() const {
  PLATEAU_CHECK(encoder.has_value());
  if (!encoder->config().is_internvl()) return 1;
  int n_tiles = options.encoder_batch > 0
                    ? options.encoder_batch
                    : std::max(1, kDefaultEncoderPatches / encoder->config().n_patches());
  if (options.encoder_memory == 0) return n_tiles;
  const auto bytes = [&] {
    int64_t total = encoder->host_bytes(n_tiles);
    for (const model::DeviceBytes& part : encoder->measure(n_tiles)) total += part.bytes;
    return total;
  };
  while (n_tiles > 1 && bytes() > options.encoder_memory) --n_tiles;
  if (bytes() > options.encoder_memory) {
    throw_error(ErrorCode::kResourceExhausted,
                "[vision encoder] expected at least {} bytes for one tile, got a bound of {}; try "
                "--encoder-memory {}MiB or a projector with smaller tiles",
                bytes(), options.encoder_memory, (bytes() >> 20) + 1);
  }
  return n_tiles;
}

}  // namespace plateau::engine

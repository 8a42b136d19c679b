#include "vision/mtmd_encoder.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/machine.h"
#include "base/release.h"
#include "llama.h"
#include "model/log_capture.h"
#include "mtmd.h"

namespace plateau::vision {
namespace {

constexpr int64_t kRgb = 3;

/// The library's reasons go where llama.cpp's go: into LogCapture.
void join_library_logs() {
  static std::once_flag once;
  std::call_once(once, [] {
    model::silence_library_logs();
    ggml_log_callback callback = nullptr;
    void* user_data = nullptr;
    llama_log_get(&callback, &user_data);
    mtmd_log_set(callback, user_data);
  });
}

mtmd_context_params params_for(const model::Backends& backends) {
  mtmd_context_params params = mtmd_context_params_default();
  params.use_gpu = !backends.device().is_cpu();
  if (params.use_gpu) params.device = backends.device().handle();
  params.print_timings = false;
  params.n_threads = backends.n_threads();
  params.warmup = false;
  return params;
}

int64_t total_bytes(const std::string& path, const mtmd_context_params& params) {
  int64_t total = 0;
  for (const auto& [device, bytes] : mtmd_get_memory_usage(path.c_str(), params)) {
    total += static_cast<int64_t>(bytes);
  }
  return total;
}

/// Sees each node of a graph before and after it is computed.
struct GraphWatch {
  const std::function<bool()>* should_cancel = nullptr;
  bool is_cancelled = false;
  std::map<ggml_backend_buffer_t, int64_t> buffers;  // that nodes were computed in

  static bool on_node(ggml_tensor* node, bool before, void* data) {
    auto& watch = *static_cast<GraphWatch*>(data);
    if (!before) {
      watch.is_cancelled = (*watch.should_cancel)();
      return !watch.is_cancelled;  // stops the graph
    }
    // A reshaped weight is a node, too.
    if (node->buffer != nullptr &&
        ggml_backend_buffer_get_usage(node->buffer) != GGML_BACKEND_BUFFER_USAGE_WEIGHTS) {
      watch.buffers[node->buffer] =
          static_cast<int64_t>(ggml_backend_buffer_get_size(node->buffer));
    }
    // To be asked after a node is a synchronisation: once a layer, and only where it is of use.
    return watch.should_cancel != nullptr && *watch.should_cancel &&
           std::string_view(node->name).starts_with("layer_out");
  }

  int64_t bytes() const {
    int64_t total = 0;
    for (const auto& [buffer, n_bytes] : buffers) total += n_bytes;
    return total;
  }
};

mtmd::input_chunks_ptr tokenize(const mtmd_context* context, const mtmd_bitmap* bitmap) {
  const std::string_view marker = mtmd_get_marker(context);
  const mtmd_input_text text = {marker.data(), marker.size(), /*add_special=*/false,
                                /*parse_special=*/true};
  mtmd::input_chunks_ptr chunks(mtmd_input_chunks_init());
  const model::LogCapture log;
  if (mtmd_tokenize(context, chunks.get(), &text, &bitmap, 1) != 0) {
    throw_error(ErrorCode::kUnsupported, "[vision encoder] cannot cut a picture of {} x {}: {}",
                mtmd_bitmap_get_nx(bitmap), mtmd_bitmap_get_ny(bitmap),
                log.first_error("libmtmd gives no reason"));
  }
  return chunks;
}

bool is_text(const mtmd_input_chunk* chunk) {
  return mtmd_input_chunk_get_type(chunk) == MTMD_INPUT_CHUNK_TYPE_TEXT;
}

}  // namespace

struct MtmdEncoder::Library {
  GraphWatch watch;  // outlives the context, which holds its address
  int n_vocab = 0;
  mtmd::context_ptr context;
  mtmd::input_chunks_ptr open_pieces;
  std::vector<const mtmd_input_chunk*> open_chunks;
};

MtmdEncoder::MtmdEncoder(const std::string& path, const model::VisionConfig& config,
                         const model::Backends& backends, const model::LanguageModel& text_model)
    : config_(config), backends_(backends), library_(std::make_unique<Library>()) {
  join_library_logs();
  measure(path);
  mtmd_context_params params = params_for(backends);
  params.cb_eval = GraphWatch::on_node;
  params.cb_eval_user_data = &library_->watch;
  library_->n_vocab = text_model.config().n_vocab;
  const model::LogCapture log;
  library_->context.reset(mtmd_init_from_file(path.c_str(), text_model.library_model(), params));
  const mtmd_context* context = library_->context.get();
  if (context == nullptr || !mtmd_support_vision(context)) {
    throw_error(ErrorCode::kCorrupt, "[{}] cannot be loaded: {}", path,
                log.first_error("libmtmd gives no reason"));
  }
  if (mtmd_decode_use_non_causal(context, nullptr)) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected a projector whose pictures are attended causally, got {}", path,
                config.projector_type);
  }
  if (mtmd_decode_use_mrope(context) != config.has_mrope()) {
    throw_error(ErrorCode::kUnsupported,
                "[{}] expected a projector for a text model with M-RoPE, got {}", path,
                config.projector_type);
  }
}

MtmdEncoder::~MtmdEncoder() = default;

/// The library builds its graph without memory, with its weights and without its graph's.
void MtmdEncoder::measure(const std::string& path) {
  mtmd_context_params params = params_for(backends_);
  weight_bytes_ = {.device = backends_.device().name(), .allocated = total_bytes(path, params)};
  params.warmup = true;
  compute_bytes_ = total_bytes(path, params) - weight_bytes_.allocated;
}

std::vector<MtmdPiece> MtmdEncoder::lay_out(PictureSize size) const {
  require_mtmd_size(config_, size);
  const mtmd::bitmap_ptr bitmap(mtmd_bitmap_init(static_cast<uint32_t>(size.width),
                                                 static_cast<uint32_t>(size.height), nullptr));
  const mtmd::input_chunks_ptr chunks = tokenize(library_->context.get(), bitmap.get());
  std::vector<MtmdPiece> pieces;
  bool has_chunk = false;
  for (size_t i = 0; i < mtmd_input_chunks_size(chunks.get()); ++i) {
    const mtmd_input_chunk* chunk = mtmd_input_chunks_get(chunks.get(), i);
    if (!is_text(chunk)) {
      pieces.push_back({.n_tokens = static_cast<int>(mtmd_input_chunk_get_n_tokens(chunk))});
      PLATEAU_CHECK(pieces.back().n_tokens >= 1);
      has_chunk = true;
      continue;
    }
    size_t n_tokens = 0;
    const llama_token* tokens = mtmd_input_chunk_get_tokens_text(chunk, &n_tokens);
    pieces.push_back({.tokens = {tokens, tokens + n_tokens}});
    const bool all_known = std::all_of(tokens, tokens + n_tokens, [&](llama_token token) {
      return token >= 0 && token < library_->n_vocab;
    });
    if (!all_known) {
      throw_error(ErrorCode::kUnsupported,
                  "[model] expected the picture markers of {} in the vocabulary, found not all; "
                  "this text model was not trained with that projector",
                  config_.projector_type);
    }
  }
  PLATEAU_CHECK(has_chunk);
  return pieces;
}

void MtmdEncoder::open(media::Rgb8 picture) {
  close();
  const PictureSize size = {picture.width, picture.height};
  require_mtmd_size(config_, size);
  PLATEAU_CHECK(std::ssize(picture.pixels) == kRgb * size.width * size.height);
  mtmd::bitmap_ptr bitmap(mtmd_bitmap_init(static_cast<uint32_t>(size.width),
                                           static_cast<uint32_t>(size.height),
                                           picture.pixels.data()));
  release(picture.pixels);  // it need not be held three times
  library_->open_pieces = tokenize(library_->context.get(), bitmap.get());
  for (size_t i = 0; i < mtmd_input_chunks_size(library_->open_pieces.get()); ++i) {
    const mtmd_input_chunk* chunk = mtmd_input_chunks_get(library_->open_pieces.get(), i);
    if (!is_text(chunk)) library_->open_chunks.push_back(chunk);
  }
  const auto n_chunks = static_cast<int64_t>(library_->open_chunks.size());
  const int64_t chunks = n_chunks * config_.mtmd().chunk_size * config_.mtmd().chunk_size;
  note_held(library_->watch.bytes() + kRgb * 2 * size.width * size.height +
            kRgb * static_cast<int64_t>(sizeof(float)) * chunks);
}

std::vector<float> MtmdEncoder::encode(int chunk, const std::function<bool()>& should_cancel) {
  PLATEAU_CHECK(chunk >= 0 && chunk < std::ssize(library_->open_chunks));
  const auto n_chunks = static_cast<int64_t>(library_->open_chunks.size());
  // Without the memory for a graph, the library would end the process.
  const int64_t needed = compute_bytes_ + mtmd_work_bytes(config_, backends_.n_threads());
  if (library_->watch.buffers.empty() && backends_.device().is_cpu() &&
      needed > available_memory_bytes()) {
    throw_error(
        ErrorCode::kResourceExhausted,
        "[vision encoder] expected {} bytes of free memory for one part of {} pixels, found "
        "{}; try a projector with fewer patches",
        needed, config_.mtmd().chunk_size, available_memory_bytes());
  }
  GraphWatch& watch = library_->watch;
  watch.should_cancel = &should_cancel;
  watch.is_cancelled = false;
  watch.buffers.clear();
  const mtmd_input_chunk* input = library_->open_chunks[static_cast<size_t>(chunk)];
  const model::LogCapture log;
  const int status = mtmd_encode_chunk(library_->context.get(), input);
  watch.should_cancel = nullptr;
  if (watch.is_cancelled) throw_error(ErrorCode::kCancelled, "interrupted");
  if (status != 0) {
    throw_error(ErrorCode::kInternal, "[vision encoder] libmtmd cannot encode a picture: {}",
                log.first_error("it gives no reason"));
  }
  const size_t n_values =
      mtmd_input_chunk_get_n_tokens(input) * static_cast<size_t>(config_.n_embd_out);
  const float* values = mtmd_get_output_embd(library_->context.get());
  const int64_t pixels = int64_t{config_.mtmd().chunk_size} * config_.mtmd().chunk_size;
  note_held(watch.bytes() +
            static_cast<int64_t>(sizeof(float)) *
                ((n_chunks + 1) * pixels * kRgb + 2 * static_cast<int64_t>(n_values)));
  return {values, values + n_values};
}

void MtmdEncoder::close() {
  library_->open_chunks.clear();
  library_->open_pieces.reset();
}

int64_t MtmdEncoder::scratch_bytes(PictureSize size, int64_t n_chunks) const {
  return compute_bytes_ + mtmd_work_bytes(config_, backends_.n_threads()) +
         std::max(mtmd_cut_bytes(config_, size, n_chunks), mtmd_chunk_bytes(config_, n_chunks));
}

void MtmdEncoder::note_held(int64_t bytes) { peak_bytes_ = std::max(peak_bytes_, bytes); }

}  // namespace plateau::vision

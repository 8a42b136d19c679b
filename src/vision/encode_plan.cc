#include "vision/encode_plan.h"

#include <algorithm>

#include "base/check.h"

namespace plateau::vision {
namespace {

constexpr int64_t kF32 = 4;
constexpr int64_t kF16 = 2;
constexpr int64_t kPlaceBytes = 8;  // WindowOrder::Place
// Large groups keep the cores busy; the smallest keeps each half of an evenly cut range at the 64
// rows that ggml's tiled flash attention needs.
constexpr int kGroups[] = {1024, 512, 256, 128};
// Alignment, graph structures, the places of one thread's tiles.
constexpr int64_t kSlackBytes = int64_t{256} << 10;

/// What ggml's CPU flash attention keeps for each thread: tiles of 64 queries and 64 keys.
int64_t flash_attention_work(int64_t head_dim, int n_threads) {
  constexpr int64_t kTile = 64;
  return n_threads * kF32 * (4 * kTile * head_dim + 2 * kTile * kTile);
}

int64_t merge2(const model::VisionConfig& config) {
  return int64_t{config.qwen25vl().merge} * config.qwen25vl().merge;
}

int64_t patch_values(const model::VisionConfig& config) {
  return int64_t{3} * config.patch_size * config.patch_size;
}

/// The largest of the tower's graphs, for n patches, and what ggml works with beside it.
int64_t graph_bytes(const model::VisionConfig& config, int64_t n, const EncodeOptions& options) {
  const int64_t n_embd = config.n_embd;
  // The frames' pixels, and the products with both kernels.
  const int64_t embed = options.n_frames * patch_values(config) + 2 * n_embd;
  // The normed input with Q, K and V; or with the two halves of the gated MLP. And positions.
  const int64_t layer = std::max(4 * n_embd, n_embd + 2 * int64_t{config.n_ff}) + 4;
  // The normed tokens and the hidden ones; or these and the embeddings. Per patch.
  const int64_t merger = n_embd + std::max(n_embd, config.n_embd_out / merge2(config) + 1);
  // Rows are converted for the product with f16 weights.
  const int64_t converted = std::max({n_embd, int64_t{config.n_ff}, patch_values(config)});
  const int64_t work =
      std::max(n * converted * kF16, flash_attention_work(config.head_dim(), options.n_threads));
  return n * kF32 * std::max({embed, layer, merger}) + work;
}

bool has_full_attention(const model::VisionConfig& config) {
  for (int il = 0; il < config.n_layer; ++il) {
    if (config.qwen25vl().is_full_attention(il)) return true;
  }
  return false;
}

/// The most of `parts` pieces of [0, n), in units of `step`.
int larger_part(int n, int step, int parts) {
  const int n_steps = (n + step - 1) / step;
  return std::min(n, (n_steps + parts - 1) / parts * step);
}

}  // namespace

int64_t encoder_scratch_bytes(const model::VisionConfig& config, int n_rows, int n_cols,
                              const EncodeOptions& options) {
  const int64_t n_tokens = int64_t{n_rows} * n_cols;
  const int64_t n_patch = n_tokens * merge2(config);
  const int64_t side = config.qwen25vl().window_patches();
  const int64_t n = std::min(n_patch, std::max<int64_t>(options.group, side * side));
  const int64_t stream = n_patch * config.n_embd * kF32;
  // These follow each other: pixels of a group, K and V, the result with a group's part of it.
  const int64_t pixels = n * patch_values(config) * kF32;
  const int64_t keys_values = has_full_attention(config) ? n_patch * config.n_embd * 2 * kF16 : 0;
  const int64_t result = (n_tokens + n / merge2(config)) * config.n_embd_out * kF32;
  const int64_t positions = n * 4 * kF32;
  return stream + std::max({pixels, keys_values, result}) + positions + n_tokens * kPlaceBytes +
         graph_bytes(config, n, options) + kSlackBytes;
}

EncodePlan plan_encode(const model::VisionConfig& config, int n_rows, int n_cols, int n_frames,
                       int64_t max_bytes, int n_threads) {
  PLATEAU_CHECK(n_rows >= 1 && n_cols >= 1 && max_bytes >= 0);
  const auto bytes = [&](int rows, int group) {
    return encoder_scratch_bytes(config, rows, n_cols,
                                 {.group = group, .n_frames = n_frames, .n_threads = n_threads});
  };
  for (const int group : kGroups) {
    if (max_bytes == 0 || bytes(n_rows, group) <= max_bytes) {
      return {n_rows, 1, group, bytes(n_rows, group)};
    }
  }
  const int step = config.qwen25vl().window_tokens;
  const int n_window_rows = (n_rows + step - 1) / step;
  EncodePlan best;
  for (const int group : kGroups) {
    // The fewest bands: memory falls as their number grows.
    int low = 2;
    int high = n_window_rows;
    if (high < 2 || bytes(larger_part(n_rows, step, high), group) > max_bytes) continue;
    while (low < high) {
      const int middle = low + (high - low) / 2;
      if (bytes(larger_part(n_rows, step, middle), group) <= max_bytes) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    const int rows = larger_part(n_rows, step, low);
    const int n_units = (n_rows + rows - 1) / rows;
    if (best.group == 0 || n_units < best.n_units) {
      best = {rows, n_units, group, bytes(rows, group)};
    }
  }
  if (best.group == 0) {
    const int64_t least = bytes(std::min(n_rows, step), kGroups[std::size(kGroups) - 1]);
    throw_error(
        ErrorCode::kResourceExhausted,
        "[vision encoder] expected at least {} bytes for one row of windows of a picture of "
        "{} x {} tokens, got a bound of {}; try --encoder-memory {}MiB or a smaller "
        "--image-max-tokens",
        least, n_cols, n_rows, max_bytes, (least >> 20) + 1);
  }
  return best;
}

}  // namespace plateau::vision

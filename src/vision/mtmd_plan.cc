#include "vision/mtmd_plan.h"

#include <algorithm>

#include "base/check.h"

namespace plateau::vision {
namespace {

constexpr int64_t kF32 = 4;
constexpr int64_t kF16 = 2;
constexpr int64_t kChannels = 3;
// The library asserts a side of at most 46000, and multiplies sides as 32-bit integers.
constexpr int64_t kMaxSide = 46'000;
constexpr int64_t kMaxPixels = int64_t{1} << 29;
constexpr int64_t kMaxChunks = 16'384;
// Tables of the resizes, chunk structures, allocator.
constexpr int64_t kSlackBytes = int64_t{256} << 10;

int64_t chunk_pixels(const model::VisionConfig& config) {
  return int64_t{config.mtmd().chunk_size} * config.mtmd().chunk_size;
}

int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

/// The widest picture that a resize makes of one of this width.
int64_t resized_width(const model::VisionConfig& config, int64_t width) {
  const model::MtmdVision& vision = config.mtmd();
  if (vision.merge > 1) {  // idefics3
    return round_up(vision.longest_edge > 0 ? vision.longest_edge : width, vision.chunk_size);
  }
  int64_t widest = vision.chunk_size;
  for (const auto& size : vision.grid_sizes) widest = std::max<int64_t>(widest, size[0]);
  return widest;
}

}  // namespace

void require_mtmd_size(const model::VisionConfig& config, PictureSize size) {
  const model::MtmdVision& vision = config.mtmd();
  if (std::max(size.width, size.height) > kMaxSide || size.width > kMaxPixels / size.height) {
    throw_error(
        ErrorCode::kResourceExhausted,
        "[image] expected at most {} pixels and sides of at most {} for a {} projector, got "
        "{} x {}; try a smaller picture",
        kMaxPixels, kMaxSide, config.projector_type, size.width, size.height);
  }
  if (vision.merge > 1 && vision.longest_edge == 0 &&
      (size.width / vision.chunk_size + 1) * (size.height / vision.chunk_size + 1) > kMaxChunks) {
    throw_error(
        ErrorCode::kResourceExhausted,
        "[image] expected at most {} chunks of {} pixels, got {} x {} pixels; try a smaller "
        "picture",
        kMaxChunks, vision.chunk_size, size.width, size.height);
  }
  // The longer side becomes longest_edge, and the shorter one would become nothing.
  const int64_t shorter = std::min(size.width, size.height);
  const int64_t longer = std::max(size.width, size.height);
  if (vision.longest_edge > 0 && shorter * vision.longest_edge < 2 * longer) {
    throw_error(ErrorCode::kInvalidArgument,
                "[image] expected a picture at most {} times longer than broad for a {} projector, "
                "got {} x {}; try cutting it",
                vision.longest_edge / 2, config.projector_type, size.width, size.height);
  }
}

int64_t mtmd_cut_bytes(const model::VisionConfig& config, PictureSize size, int64_t n_chunks) {
  const int64_t pixels = size.width * size.height;
  const int64_t targets = n_chunks * chunk_pixels(config);  // refined picture and overview
  // A resize passes over rows first, then over columns; its results are copied once.
  const int64_t between = 2 * resized_width(config, size.width) * size.height;
  return kChannels * (2 * pixels + between + 5 * targets) + kChannels * kF32 * targets +
         72 * (size.width + size.height) + kSlackBytes;
}

int64_t mtmd_chunk_bytes(const model::VisionConfig& config, int64_t n_chunks) {
  const int64_t n_tokens = int64_t{config.chunk_side()} * config.chunk_side();
  return (n_chunks + 2) * chunk_pixels(config) * kChannels * kF32 +
         2 * n_tokens * config.n_embd_out * kF32 + kSlackBytes;
}

int64_t mtmd_work_bytes(const model::VisionConfig& config, int n_threads) {
  const int64_t n_patch = chunk_pixels(config) / (int64_t{config.patch_size} * config.patch_size);
  // Rows are converted for the product with weights that are not f32.
  const int64_t widest =
      std::max({int64_t{config.n_embd}, int64_t{config.n_ff},
                kChannels * config.patch_size * config.patch_size, int64_t{config.n_embd_out}});
  // Flash attention keeps tiles of 64 queries and 64 keys for each thread.
  constexpr int64_t kTile = 64;
  const int64_t attention = n_threads * kF32 * (4 * kTile * config.head_dim() + 2 * kTile * kTile);
  return std::max(n_patch * widest * kF16, attention) + kSlackBytes;
}

}  // namespace plateau::vision

// Tested by token_grid_test.cc.
#include "media/token_grid.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "media/image.h"

namespace plateau::media {
namespace {

constexpr int64_t kMaxTokensPerSide = int64_t{1} << 24;

void check(int64_t width, int64_t height, const TokenGridOptions& options) {
  if (width < 1 || height < 1 || width > kMaxImageSide || height > kMaxImageSide) {
    throw_error(ErrorCode::kInvalidArgument,
                "[image] expected a size of 1 to {} pixels on each side, got {} x {}",
                kMaxImageSide, width, height);
  }
  if (options.token_size < 1 || options.min_pixels < 0 || options.max_tokens < 0) {
    throw_error(ErrorCode::kInvalidArgument,
                "[image] expected a positive token size and limits of 0 or more, got token_size "
                "{}, min_pixels {}, max_tokens {}",
                options.token_size, options.min_pixels, options.max_tokens);
  }
}

int64_t at_least_one(double n_tokens) {
  return std::clamp(static_cast<int64_t>(n_tokens), int64_t{1}, kMaxTokensPerSide);
}

}  // namespace

TokenGrid plan_token_grid(int64_t width, int64_t height, const TokenGridOptions& options) {
  check(width, height, options);
  const int64_t size = options.token_size;
  const auto nearest = [&](int64_t side) {
    return std::max<int64_t>(1, (2 * side + size) / (2 * size));
  };
  int64_t n_cols = nearest(width);
  int64_t n_rows = nearest(height);
  const double area = static_cast<double>(width) * static_cast<double>(height);
  const auto token_side = static_cast<double>(size);
  if (options.max_tokens > 0 && n_rows * n_cols > options.max_tokens) {
    const double shrink =
        std::sqrt(area / (static_cast<double>(options.max_tokens) * token_side * token_side));
    n_cols = at_least_one(std::floor(static_cast<double>(width) / shrink / token_side));
    n_rows = at_least_one(std::floor(static_cast<double>(height) / shrink / token_side));
  } else if (n_rows * n_cols * size * size < options.min_pixels) {
    const double enlarge = std::sqrt(static_cast<double>(options.min_pixels) / area);
    n_cols = at_least_one(std::ceil(static_cast<double>(width) * enlarge / token_side));
    n_rows = at_least_one(std::ceil(static_cast<double>(height) * enlarge / token_side));
  }
  if (options.max_tokens > 0 && n_rows * n_cols > options.max_tokens) {
    // A side of one token cannot shrink any more, and rounding up can pass the limit.
    int64_t& longer = n_rows > n_cols ? n_rows : n_cols;
    longer = std::max<int64_t>(1, options.max_tokens / std::min(n_rows, n_cols));
    if (n_rows * n_cols > options.max_tokens) n_rows = n_cols = 1;
  }
  return {.n_rows = static_cast<int>(n_rows),
          .n_cols = static_cast<int>(n_cols),
          .token_size = options.token_size};
}

}  // namespace plateau::media

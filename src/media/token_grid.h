// How a picture's size is rounded to whole tokens (Qwen2-VL's native resolution,
// arXiv:2409.12191). Pure arithmetic.
#pragma once

#include <cstdint>

namespace plateau::media {

struct TokenGridOptions {
  int token_size = 28;     // side of a token in pixels, from the vision model
  int64_t min_pixels = 1;  // enlarge a smaller picture
  int64_t max_tokens = 0;  // shrink a larger one; 0: native size
};

/// A picture resized to [n_cols * token_size, n_rows * token_size].
struct TokenGrid {
  int n_rows = 1;
  int n_cols = 1;
  int token_size = 28;

  int64_t n_tokens() const { return int64_t{n_rows} * n_cols; }
  int64_t width() const { return int64_t{n_cols} * token_size; }
  int64_t height() const { return int64_t{n_rows} * token_size; }
};

/// The family's smart_resize: each side to the nearest whole number of tokens (halves up), at least
/// one; then, outside the limits, both sides by the same factor, rounded down from above and up
/// from below. Unlike it, max_tokens always holds, if need be at the cost of the longer side, and
/// any aspect ratio is taken.
/// Errors: kInvalidArgument for a size or an option that is not positive.
TokenGrid plan_token_grid(int64_t width, int64_t height, const TokenGridOptions& options);

}  // namespace plateau::media

#include "cli/film_text.h"

#include <fmt/format.h>

namespace plateau::cli {

std::string film_text(const ImageReport& film) {
  const VideoReport& video = film.video.value();
  return fmt::format(
      "{}x{} {} ({}), {:.1f} s, {} frames at {:.4g} per second, used at {}x{}, {} "
      "visual tokens",
      film.width, film.height, video.codec, video.container, video.duration_s, video.n_frames,
      video.fps, film.used_width, film.used_height, film.tokens_made);
}

}  // namespace plateau::cli

#include "cli/film_text.h"

#include <fmt/format.h>

#include "base/plural.h"

namespace plateau::cli {

std::string film_text(const ImageReport& film) {
  const VideoReport& video = film.video.value();
  return fmt::format("{}x{} {} ({}), {:.1f} s, {} at {:.4g} per second, used at {}x{}, {}",
                     film.width, film.height, video.codec, video.container, video.duration_s,
                     counted(video.n_frames, "frame"), video.fps, film.used_width, film.used_height,
                     counted(film.tokens_made, "visual token"));
}

}  // namespace plateau::cli

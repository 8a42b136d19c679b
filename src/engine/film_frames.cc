#include "engine/film_frames.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "media/pixel_bands.h"
#include "media/reader_memory.h"

namespace plateau::engine {

FilmFrames::FilmFrames(const std::string& path, const FilmPlan& film, int width, int height,
                       const media::ImageLimits& limits, std::function<bool()> should_cancel)
    : film_(film), width_(width), height_(height), limits_(limits) {
  if (film.is_list) return;
  media::VideoReadOptions options;
  options.width = width;
  options.height = height;
  options.should_cancel = std::move(should_cancel);
  reader_.emplace(path, film.frames, media::VideoLimits{}, std::move(options));
}

media::Rgb8 FilmFrames::next() {
  if (reader_) {
    std::optional<media::Frame> frame = reader_->next();
    PLATEAU_CHECK(frame.has_value());
    return std::move(frame->picture);
  }
  PLATEAU_CHECK(next_ < film_.listed.size());
  media::BandReader bands(film_.listed[next_++].path, width_, height_, limits_);
  media::Rgb8 picture{width_, height_, {}};
  const auto pixels = bands.next(height_);
  picture.pixels.assign(pixels.begin(), pixels.end());
  return picture;
}

std::string FilmFrames::damage() const { return reader_ ? reader_->report().damage() : ""; }

int64_t FilmFrames::n_damaged() const { return reader_ ? reader_->report().n_damaged : 0; }

int64_t FilmFrames::peak_bytes() const {
  if (!reader_) return 0;
  return reader_->report().decoder_frame_bytes + reader_->report().picture_bytes;
}

int64_t film_frames_bytes(const FilmPlan& film, int width, int height, int n_held) {
  const int64_t frame = int64_t{3} * width * height;
  if (film.is_list) {
    return media::band_reader_bytes(film.largest, width, height, height) + n_held * frame;
  }
  // The reader's own bound has the picture that it hands out.
  return media::video_reader_bytes(film.info.memory, width, height) + (n_held - 1) * frame;
}

}  // namespace plateau::engine

// Tested by film_scene_test.cc.
#include "eval/film_scene.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "eval/background.h"
#include "eval/film_writer.h"
#include "eval/grid.h"
#include "eval/photo.h"
#include "eval/placement.h"
#include "eval/rng.h"
#include "eval/sprite.h"

namespace plateau::eval {
namespace {

constexpr int kSecondsPerBackdrop = 30;
constexpr double kMaxSeconds = 7 * 24 * 3600;  // of what media::VideoReader reads
constexpr int kMaxFps = 60;
constexpr int64_t kMaxFramePixels = 36'000'000;  // likewise
// Keys of the independent random streams of a film's seed, beside those of place_in_turn().
constexpr uint64_t kTimeStream = ~uint64_t{32};
constexpr uint64_t kFirstBackdropStream = ~uint64_t{1} << 32;

void check_options(const SceneOptions& scene, const FilmOptions& film) {
  // Written so that NaN fails.
  if (!(film.seconds > 0 && film.seconds <= kMaxSeconds)) {
    throw_error(ErrorCode::kInvalidArgument,
                "[--seconds] expected a film of more than 0, up to {} seconds, got {}", kMaxSeconds,
                film.seconds);
  }
  if (film.fps < 1 || film.fps > kMaxFps) {
    throw_error(ErrorCode::kInvalidArgument,
                "[--fps] expected 1 to {} frames per second of film, got {}", kMaxFps, film.fps);
  }
  if (!(film.needle_s > 0 && film.needle_s <= film.seconds)) {
    throw_error(ErrorCode::kInvalidArgument,
                "[--needle-seconds] expected more than 0, up to the film's {} seconds, got {}",
                film.seconds, film.needle_s);
  }
  if (scene.width * scene.height > kMaxFramePixels) {
    throw_error(ErrorCode::kInvalidArgument,
                "[needle] expected frames of at most {} pixels, got {}x{}", kMaxFramePixels,
                scene.width, scene.height);
  }
}

/// Whole frames, at least one.
int64_t frames_of(double seconds, int fps) {
  return std::max<int64_t>(1, std::llround(seconds * fps));
}

/// When each of n drawings begins, in seconds, uniform among the ways to lay them into the film.
std::vector<int64_t> choose_starts(const FilmOptions& film, int n, Rng rng) {
  const int64_t n_seconds = frames_of(film.seconds, film.fps) / film.fps;
  const int64_t span = (frames_of(film.needle_s, film.fps) + film.fps - 1) / film.fps;
  const int64_t n_free = n_seconds - span * n;
  if (n_free < 0) {
    throw_error(ErrorCode::kInvalidArgument,
                "[--seconds] expected at least {} seconds for {} drawings of {} s, got {}; try a "
                "longer film or fewer --objects",
                span * n, n, span, film.seconds);
  }
  std::vector<int64_t> starts(static_cast<size_t>(n));
  for (int64_t& start : starts) {
    start = static_cast<int64_t>(rng.below(static_cast<uint64_t>(n_free) + 1));
  }
  std::sort(starts.begin(), starts.end());
  for (size_t i = 0; i < starts.size(); ++i) starts[i] += span * static_cast<int64_t>(i);
  // Which drawing comes first is chance, too.
  for (size_t i = starts.size(); i > 1; --i) std::swap(starts[i - 1], starts[rng.below(i)]);
  return starts;
}

using Pixels = std::vector<uint8_t>;  // [height, width, 3]

/// The pictures that the backdrop fades through.
class Backdrops {
 public:
  Backdrops(const CellGrid& grid, const SceneOptions& scene, const FilmOptions& film)
      : grid_(grid), scene_(scene), film_(film) {}

  /// Paints the backdrop of a frame.
  void paint(int64_t frame, RgbView view) {
    const int64_t n_fade = int64_t{kSecondsPerBackdrop} * film_.fps;
    const int64_t index = frame / n_fade;
    if (index != index_) move_to(index);
    const auto weight = static_cast<uint32_t>((frame % n_fade) * kOne / n_fade);
    for (size_t i = 0; i < now_.size(); ++i) {
      view.pixels[i] =
          static_cast<uint8_t>((now_[i] * (kOne - weight) + next_[i] * weight + kOne / 2) / kOne);
    }
  }

 private:
  static constexpr uint32_t kOne = 256;

  void move_to(int64_t index) {
    now_ = index == index_ + 1 && index_ >= 0 ? std::move(next_) : picture(index);
    next_ = picture(index + 1);
    index_ = index;
  }

  Pixels picture(int64_t index) const {
    Pixels pixels(static_cast<size_t>(grid_.width() * grid_.height() * 3));
    const RgbView view{pixels.data(), grid_.width(), grid_.height(), grid_.width() * 3};
    Rng rng(scene_.seed, kFirstBackdropStream + static_cast<uint64_t>(index));
    std::string photo = scene_.background;
    if (!film_.photos.empty()) photo = film_.photos[rng.below(film_.photos.size())];
    if (!photo.empty()) {
      Photo(photo, grid_.width(), grid_.height()).read(0, view);
      return pixels;
    }
    const uint64_t seed = rng.next();
    for (int row = 0; row < grid_.n_rows(); ++row) {
      const int64_t top = grid_.top(row);
      paint_cells(grid_, seed, row, view.part(0, top, grid_.width(), grid_.top(row + 1) - top));
    }
    return pixels;
  }

  const CellGrid& grid_;
  const SceneOptions& scene_;
  const FilmOptions& film_;
  int64_t index_ = -1;
  Pixels now_;
  Pixels next_;
};

}  // namespace

Scene write_film_scene(const SceneOptions& options, const FilmOptions& film,
                       const std::string& path,
                       const std::function<void(int64_t, int64_t)>& on_frame) {
  check_options(options, film);
  const CellGrid grid(options.width, options.height, options.cell, options.n_cols, options.n_rows);
  const int64_t n_frames = frames_of(film.seconds, film.fps);
  Scene scene{grid.width(),
              grid.height(),
              grid.n_cols(),
              grid.n_rows(),
              options.seed,
              options.n_objects,
              {},
              static_cast<double>(n_frames) / film.fps,
              film.fps};
  const std::vector<Placement> placed =
      place_in_turn(grid, options.variety, options.n_objects, options.n_decoys, options.seed);
  const std::vector<int64_t> starts =
      choose_starts(film, static_cast<int>(placed.size()), Rng(options.seed, kTimeStream));
  const int64_t n_shown = frames_of(film.needle_s, film.fps);
  std::vector<Sprite> sprites;
  for (size_t i = 0; i < placed.size(); ++i) {
    sprites.push_back(render_sprite(placed[i], grid));
    Drawing drawing = drawing_of(placed[i], sprites.back());
    drawing.start_s = static_cast<double>(starts[i]);
    drawing.end_s = drawing.start_s + static_cast<double>(n_shown) / film.fps;
    scene.drawings.push_back(std::move(drawing));
  }
  FilmWriter writer(path, grid.width(), grid.height(), film.fps);
  Backdrops backdrops(grid, options, film);
  Pixels pixels(static_cast<size_t>(grid.width() * grid.height() * 3));
  const RgbView view{pixels.data(), grid.width(), grid.height(), grid.width() * 3};
  for (int64_t frame = 0; frame < n_frames; ++frame) {
    backdrops.paint(frame, view);
    for (size_t i = 0; i < sprites.size(); ++i) {
      const int64_t first = starts[i] * film.fps;
      if (frame >= first && frame < first + n_shown) draw_sprite(sprites[i], view, 0);
    }
    writer.add(view);
    if (on_frame) on_frame(frame + 1, n_frames);
  }
  writer.finish();
  return scene;
}

}  // namespace plateau::eval

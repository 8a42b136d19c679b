// Needle films: a backdrop that changes slowly, and numbered objects, each of which is there for a
// moment only.
//
// Memory: three frames, plus the background photograph at its own size.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval/scene.h"

namespace plateau::eval {

struct FilmOptions {
  double seconds = 60;  // rounded to whole frames
  int fps = 1;          // frames a second, as they are stored
  double needle_s = 1;  // how long each drawing is there, rounded to whole frames, at least one
  /// Photographs that the backdrop goes through, in random order; empty: scene's background.
  std::vector<std::string> photos = {};
};

/// Writes a film named *.mp4, *.mkv or *.avi, in place of what is there. Of `scene`, width and
/// height are a frame's. A drawing begins at a whole second; no two are there at the same time, so
/// that each may stand in any cell.
///
/// The backdrop fades from one picture to the next in 30 seconds: from one procedural backdrop or
/// photograph to the next. A single background photograph stands still.
///
/// `on_frame` (may be empty) is called after each frame; what it throws ends the writing, and the
/// unfinished film is removed.
/// Errors: as write_scene, and kInvalidArgument (a film's size or length, or too many drawings for
/// it).
Scene write_film_scene(const SceneOptions& scene, const FilmOptions& film, const std::string& path,
                       const std::function<void(int64_t n_done, int64_t n_frames)>& on_frame);

}  // namespace plateau::eval

// Tested by scene_test.cc.
#include "eval/scene.h"

#include <memory>

#include "eval/background.h"
#include "eval/grid.h"
#include "eval/photo.h"
#include "eval/picture_writer.h"
#include "eval/placement.h"
#include "eval/rng.h"
#include "eval/sprite.h"

namespace plateau::eval {
namespace {

PictureLayout layout_of(const CellGrid& grid) {
  PictureLayout layout;
  layout.width = grid.width();
  for (int row = 0; row <= grid.n_rows(); ++row) layout.band_tops.push_back(grid.top(row));
  return layout;
}

}  // namespace

Drawing drawing_of(const Placement& object, const Sprite& sprite) {
  Drawing drawing;
  drawing.object = object.object;
  drawing.color = object.color_name;
  drawing.size = object.size_name;
  drawing.digit = object.digit;
  for (const std::string_view word : object.words) {
    if (!drawing.words.empty()) drawing.words += ' ';
    drawing.words += word;
  }
  drawing.x = sprite.painted.x;
  drawing.y = sprite.painted.y;
  drawing.w = sprite.painted.width;
  drawing.h = sprite.painted.height;
  drawing.col = object.col;
  drawing.row = object.row;
  return drawing;
}

Scene write_scene(const SceneOptions& options, const std::string& path) {
  const CellGrid grid(options.width, options.height, options.cell, options.n_cols, options.n_rows);
  Scene scene{grid.width(),
              grid.height(),
              grid.n_cols(),
              grid.n_rows(),
              options.seed,
              options.n_objects,
              {}};
  std::vector<Sprite> sprites;
  for (const Placement& object :
       place_objects(grid, options.variety, options.n_objects, options.n_decoys, options.seed)) {
    sprites.push_back(render_sprite(object, grid));
    scene.drawings.push_back(drawing_of(object, sprites.back()));
  }
  std::unique_ptr<Photo> photo;
  if (!options.background.empty()) {
    photo = std::make_unique<Photo>(options.background, grid.width(), grid.height());
  }
  write_picture(path, layout_of(grid), [&](int row, RgbView band) {
    if (photo) {
      photo->read(grid.top(row), band);
    } else {
      paint_cells(grid, options.seed, row, band);
    }
    for (const Sprite& sprite : sprites) draw_sprite(sprite, band, grid.top(row));
  });
  return scene;
}

}  // namespace plateau::eval

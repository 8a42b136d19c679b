// Tested by placement_test.cc. The numbers are those of the tiles that the pico model was trained
// on; it does not read other sizes well.
#include "eval/placement.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/plural.h"
#include "eval/decoys.h"
#include "eval/rng.h"

namespace plateau::eval {
namespace {

constexpr std::array<ObjectKind, 8> kKinds = {{{"cat", "cats", {245, 140, 40}},
                                               {"dog", "dogs", {120, 72, 40}},
                                               {"star", "stars", {250, 220, 40}},
                                               {"ring", "rings", {150, 60, 200}},
                                               {"tree", "trees", {30, 150, 60}},
                                               {"fish", "fish", {40, 110, 235}},
                                               {"car", "cars", {220, 35, 45}},
                                               {"moon", "moons", {225, 225, 235}}}};
constexpr std::array<NamedColor, 8> kColors = {{{"orange", {245, 140, 40}},
                                                {"brown", {120, 72, 40}},
                                                {"yellow", {250, 220, 40}},
                                                {"purple", {150, 60, 200}},
                                                {"green", {30, 150, 60}},
                                                {"blue", {40, 110, 235}},
                                                {"red", {220, 35, 45}},
                                                {"grey", {140, 140, 140}}}};
constexpr size_t kVarieties = 2 * kColors.size() * kKinds.size();  // sizes, colours, kinds
constexpr int kMaxDrawings = 10000;
// DejaVu Sans Bold: all digits advance alike; capital height without the overshoot of round ones.
constexpr int kUnitsPerEm = 2048;
constexpr int kAdvance = 1425;
constexpr int kMonoAdvance = 1233;
constexpr int kCapHeight = 1493;
// Keys of the independent random streams of one seed; cells of the background use their index.
constexpr uint64_t kCellStream = ~uint64_t{0};
constexpr uint64_t kLookStream = ~uint64_t{1};
constexpr uint64_t kDecoyStream = ~uint64_t{2};

int scaled(int units, int font_size) { return (units * font_size + kUnitsPerEm / 2) / kUnitsPerEm; }

template <typename Items>
void shuffle(Items& items, Rng& rng) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.below(i)]);
}

/// `count` different cells (Floyd's sampling: no table of all cells), then shuffled.
std::vector<int64_t> choose_cells(int64_t n_cells, int count, Rng& rng) {
  std::vector<int64_t> chosen;
  std::unordered_set<int64_t> taken;
  for (int64_t last = n_cells - count; last < n_cells; ++last) {
    const auto cell = static_cast<int64_t>(rng.below(static_cast<uint64_t>(last) + 1));
    chosen.push_back(taken.contains(cell) ? last : cell);
    taken.insert(chosen.back());
  }
  shuffle(chosen, rng);
  return chosen;
}

int64_t most_objects(ObjectVariety variety) {
  return variety == ObjectVariety::kUsual ? static_cast<int64_t>(kKinds.size()) : kMaxDrawings;
}

void check_counts(const CellGrid& grid, ObjectVariety variety, int n_objects, int n_decoys) {
  const int64_t kinds = most_objects(variety);
  const int64_t most = std::min(kinds, grid.n_cells());
  if (n_objects < 1 || n_objects > most) {
    throw_error(
        ErrorCode::kInvalidArgument,
        "[needle] expected 1 to {} objects ({} kinds; one in each of {}x{} cells), got {}{}", most,
        kKinds.size(), grid.n_cols(), grid.n_rows(), n_objects,
        n_objects > kinds ? "; more are told apart by colour and size" : "");
  }
  const int64_t most_decoys = std::min<int64_t>(kMaxDrawings, grid.n_cells()) - n_objects;
  if (n_decoys < 0 || n_decoys > most_decoys) {
    throw_error(ErrorCode::kInvalidArgument,
                "[needle] expected 0 to {} distractors beside {} in {}x{} cells, got {}",
                most_decoys, counted(n_objects, "object"), grid.n_cols(), grid.n_rows(), n_decoys);
  }
}

/// The descriptions of n_objects objects; none twice while there are others.
std::vector<Placement> choose_objects(ObjectVariety variety, int n_objects, Rng& rng) {
  std::vector<Placement> objects;
  if (variety == ObjectVariety::kUsual) {
    std::array<ObjectKind, kKinds.size()> kinds = kKinds;
    shuffle(kinds, rng);
    objects.resize(n_objects);
    for (int i = 0; i < n_objects; ++i) objects[i].object = kinds[i].name;
    return objects;
  }
  std::vector<size_t> varieties(kVarieties);
  for (size_t i = 0; i < varieties.size(); ++i) varieties[i] = i;
  for (size_t i = 0; i < static_cast<size_t>(n_objects); ++i) {
    if (i % kVarieties == 0) shuffle(varieties, rng);
    const size_t which = varieties[i % kVarieties];
    Placement& object = objects.emplace_back();
    object.object = kKinds[which % kKinds.size()].name;
    object.color_name = kColors[which / kKinds.size() % kColors.size()].name;
    object.size_name = which < kVarieties / 2 ? "small" : "large";
  }
  return objects;
}

/// Objects, then decoys, with their looks; no cells yet.
std::vector<Placement> choose_drawings(int cell, ObjectVariety variety, int n_objects, int n_decoys,
                                       uint64_t seed) {
  Rng look_rng(seed, kLookStream);
  Rng decoy_rng(seed, kDecoyStream);
  std::vector<Placement> drawings = choose_objects(variety, n_objects, look_rng);
  for (Placement& object : drawings) {
    object.digit = look_rng.range(0, 10);
    choose_look(object, cell, look_rng);
  }
  const std::vector<Placement> objects = drawings;
  for (int i = 0; i < n_decoys; ++i) {
    drawings.push_back(choose_decoy(objects, variety, cell, decoy_rng));
  }
  return drawings;
}

void set_cell(int64_t cell, const CellGrid& grid, Placement& drawing) {
  drawing.col = static_cast<int>(cell % grid.n_cols());
  drawing.row = static_cast<int>(cell / grid.n_cols());
}

}  // namespace

std::span<const ObjectKind> object_kinds() { return kKinds; }

std::span<const NamedColor> object_colors() { return kColors; }

int digit_width(int font_size) { return scaled(kAdvance, font_size); }

int digit_height(int font_size) { return scaled(kCapHeight, font_size); }

int letter_width(int font_size) { return scaled(kMonoAdvance, font_size); }

std::vector<Placement> place_objects(const CellGrid& grid, ObjectVariety variety, int n_objects,
                                     int n_decoys, uint64_t seed) {
  check_counts(grid, variety, n_objects, n_decoys);
  std::vector<Placement> drawings =
      choose_drawings(grid.cell(), variety, n_objects, n_decoys, seed);
  Rng cell_rng(seed, kCellStream);
  const auto cells = choose_cells(grid.n_cells(), n_objects + n_decoys, cell_rng);
  for (size_t i = 0; i < cells.size(); ++i) set_cell(cells[i], grid, drawings[i]);
  return drawings;
}

std::vector<Placement> place_in_turn(const CellGrid& grid, ObjectVariety variety, int n_objects,
                                     int n_decoys, uint64_t seed) {
  const int64_t most = most_objects(variety);
  if (n_objects < 1 || n_objects > most) {
    throw_error(ErrorCode::kInvalidArgument, "[needle] expected 1 to {} objects, got {}{}", most,
                n_objects, n_objects > most ? "; more are told apart by colour and size" : "");
  }
  if (n_decoys < 0 || n_decoys > kMaxDrawings - n_objects) {
    throw_error(ErrorCode::kInvalidArgument,
                "[needle] expected 0 to {} distractors beside {}, got {}", kMaxDrawings - n_objects,
                counted(n_objects, "object"), n_decoys);
  }
  std::vector<Placement> drawings =
      choose_drawings(grid.cell(), variety, n_objects, n_decoys, seed);
  Rng cell_rng(seed, kCellStream);
  for (Placement& drawing : drawings) {
    set_cell(static_cast<int64_t>(cell_rng.below(static_cast<uint64_t>(grid.n_cells()))), grid,
             drawing);
  }
  return drawings;
}

}  // namespace plateau::eval

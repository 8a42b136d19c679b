// Tested by placement_test.cc. The numbers are those of the tiles that the pico model was trained
// on; it does not read other sizes well.
#include "eval/placement.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "eval/rng.h"

namespace plateau::eval {
namespace {

constexpr std::array<ObjectKind, 8> kKinds = {{{"cat", {245, 140, 40}},
                                               {"dog", {120, 72, 40}},
                                               {"star", {250, 220, 40}},
                                               {"ring", {150, 60, 200}},
                                               {"tree", {30, 150, 60}},
                                               {"fish", {40, 110, 235}},
                                               {"car", {220, 35, 45}},
                                               {"moon", {225, 225, 235}}}};
constexpr int kJitter = 28;
// DejaVu Sans Bold: all digits advance alike; capital height without the overshoot of round ones.
constexpr int kUnitsPerEm = 2048;
constexpr int kAdvance = 1425;
constexpr int kCapHeight = 1493;
// Keys of the independent random streams of one seed; cells of the background use their index.
constexpr uint64_t kCellStream = ~uint64_t{0};
constexpr uint64_t kLookStream = ~uint64_t{1};

int scaled(int units, int font_size) { return (units * font_size + kUnitsPerEm / 2) / kUnitsPerEm; }

/// `count` different cells (Floyd's sampling: no table of all cells), then shuffled.
std::vector<int64_t> choose_cells(int64_t n_cells, int count, Rng& rng) {
  std::vector<int64_t> chosen;
  for (int64_t last = n_cells - count; last < n_cells; ++last) {
    const auto cell = static_cast<int64_t>(rng.below(static_cast<uint64_t>(last) + 1));
    const bool taken = std::find(chosen.begin(), chosen.end(), cell) != chosen.end();
    chosen.push_back(taken ? last : cell);
  }
  for (size_t i = chosen.size(); i > 1; --i) std::swap(chosen[i - 1], chosen[rng.below(i)]);
  return chosen;
}

uint8_t jitter(uint8_t channel, Rng& rng) {
  return static_cast<uint8_t>(std::clamp(channel + rng.range(-kJitter, kJitter + 1), 0, 255));
}

void choose_look(Placement& object, int cell, Rgb usual, Rng& rng) {
  object.digit = rng.range(0, 10);
  object.size = rng.range(34, 50);
  object.font_size = rng.range(25, 34);
  const int width = std::max(object.size, digit_width(object.font_size)) + 6;
  const int height = object.size + digit_height(object.font_size) + 10;
  object.x = rng.range(4, std::max(5, cell - width - 2));
  object.y = rng.range(4, std::max(5, cell - height - 2));
  object.color = {jitter(usual.r, rng), jitter(usual.g, rng), jitter(usual.b, rng)};
  const bool bright = object.color.r + object.color.g + object.color.b > 380;
  object.outline = bright ? Rgb{0, 0, 0} : Rgb{255, 255, 255};
}

}  // namespace

std::span<const ObjectKind> object_kinds() { return kKinds; }

int digit_width(int font_size) { return scaled(kAdvance, font_size); }

int digit_height(int font_size) { return scaled(kCapHeight, font_size); }

std::vector<Placement> place_objects(const CellGrid& grid, int n_objects, uint64_t seed) {
  const int64_t most = std::min<int64_t>(kKinds.size(), grid.n_cells());
  if (n_objects < 1 || n_objects > most) {
    throw_error(ErrorCode::kInvalidArgument,
                "[needle] expected 1 to {} objects ({} kinds; one in each of {}x{} cells), got {}",
                most, kKinds.size(), grid.n_cols(), grid.n_rows(), n_objects);
  }
  Rng cell_rng(seed, kCellStream);
  Rng look_rng(seed, kLookStream);
  std::array<ObjectKind, kKinds.size()> kinds = kKinds;
  for (size_t i = kinds.size(); i > 1; --i) std::swap(kinds[i - 1], kinds[look_rng.below(i)]);

  std::vector<Placement> objects;
  for (const int64_t cell : choose_cells(grid.n_cells(), n_objects, cell_rng)) {
    Placement& object = objects.emplace_back();
    const ObjectKind& kind = kinds[objects.size() - 1];
    object.object = kind.name;
    object.col = static_cast<int>(cell % grid.n_cols());
    object.row = static_cast<int>(cell / grid.n_cols());
    choose_look(object, grid.cell(), kind.color, look_rng);
  }
  return objects;
}

}  // namespace plateau::eval

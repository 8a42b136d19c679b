// Tested by placement_test.cc.
#include "eval/decoys.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace plateau::eval {
namespace {

constexpr int kJitter = 28;
constexpr int kNamedJitter =
    12;  // of a colour that a question names: orange and yellow are 80 apart
constexpr int kDecoyTries = 20;
constexpr std::array<std::string_view, 24> kWords = {
    "OPEN",   "EXIT",    "SALE", "CAFE",  "HOTEL",    "BANK",   "STOP", "BAKERY",
    "MUSEUM", "TICKETS", "BUS",  "BOOKS", "ZOO",      "QUIZ",   "JAZZ", "GIFTS",
    "NORTH",  "WEST",    "PARK", "FLOOR", "PLATFORM", "MARKET", "KEYS", "VIDEO"};

uint8_t jitter(uint8_t channel, Rng& rng, int most = kJitter) {
  return static_cast<uint8_t>(std::clamp(channel + rng.range(-most, most + 1), 0, 255));
}

int side_of(std::string_view size_name, Rng& rng) {
  if (size_name == "small") return rng.range(24, 32);
  if (size_name == "large") return rng.range(48, 58);
  return rng.range(34, 50);
}

Rgb color_of(const Placement& object) {
  for (const NamedColor& color : object_colors()) {
    if (color.name == object.color_name) return color.color;
  }
  for (const ObjectKind& kind : object_kinds()) {
    if (kind.name == object.object) return kind.color;
  }
  throw_error(ErrorCode::kInternal, "[needle] no object '{}'", object.object);
}

bool looks_alike(const Placement& a, const Placement& b) {
  return a.object == b.object && a.color_name == b.color_name && a.size_name == b.size_name;
}

/// Another colour or size of one of the objects; of kUsual, a kind that is not among them.
bool choose_look_alike(std::span<const Placement> objects, ObjectVariety variety, Placement& decoy,
                       Rng& rng) {
  const auto kinds = object_kinds();
  for (int i = 0; i < kDecoyTries; ++i) {
    if (variety == ObjectVariety::kUsual) {
      decoy.object = kinds[rng.below(kinds.size())].name;
    } else {
      const Placement& model = objects[rng.below(objects.size())];
      decoy.object = model.object;
      decoy.color_name = object_colors()[rng.below(object_colors().size())].name;
      decoy.size_name = rng.coin() ? "small" : "large";
    }
    const bool taken = std::any_of(objects.begin(), objects.end(), [&](const Placement& object) {
      return looks_alike(object, decoy);
    });
    if (!taken) return true;
  }
  return false;
}

void choose_words(Placement& card, int cell, Rng& rng) {
  const int n_lines = rng.range(1, 5);
  size_t longest = 0;
  for (int i = 0; i < n_lines; ++i) {
    card.words.push_back(kWords[rng.below(kWords.size())]);
    longest = std::max(longest, card.words.back().size());
  }
  card.font_size = rng.range(12, 17);
  const int width = static_cast<int>(longest) * letter_width(card.font_size) + 8;
  const int height = n_lines * card.font_size + 6;
  card.x = rng.range(4, std::max(5, cell - width - 2));
  card.y = rng.range(4, std::max(5, cell - height - 2));
  card.color = {jitter(250, rng), jitter(250, rng), jitter(250, rng)};
  card.outline = {jitter(0, rng), jitter(0, rng), jitter(0, rng)};
}

}  // namespace

void choose_look(Placement& object, int cell, Rng& rng) {
  const bool numbered = object.digit != kNoDigit;
  object.size = object.object.empty() ? 0 : side_of(object.size_name, rng);
  object.font_size = rng.range(25, 34);
  const int width = std::max(object.size, numbered ? digit_width(object.font_size) : 0) + 6;
  const int height = object.size + (numbered ? digit_height(object.font_size) : 0) + 10;
  object.x = rng.range(4, std::max(5, cell - width - 2));
  object.y = rng.range(4, std::max(5, cell - height - 2));
  if (object.object.empty()) return;
  const Rgb usual = color_of(object);
  const int most = object.color_name.empty() ? kJitter : kNamedJitter;
  object.color = {jitter(usual.r, rng, most), jitter(usual.g, rng, most),
                  jitter(usual.b, rng, most)};
  const bool bright = object.color.r + object.color.g + object.color.b > 380;
  object.on_card = !object.color_name.empty();
  object.outline = bright || object.on_card ? Rgb{0, 0, 0} : Rgb{255, 255, 255};
  object.outline_width = object.on_card ? 2 : 1;
}

Placement choose_decoy(std::span<const Placement> objects, ObjectVariety variety, int cell,
                       Rng& rng) {
  Placement decoy;
  const uint64_t form = rng.below(3);
  if (form == 0) {
    choose_words(decoy, cell, rng);
    return decoy;
  }
  if (form == 1 || !choose_look_alike(objects, variety, decoy, rng)) {
    decoy = Placement();
    decoy.digit = rng.range(0, 10);
  }
  choose_look(decoy, cell, rng);
  return decoy;
}

}  // namespace plateau::eval

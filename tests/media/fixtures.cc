#include "media/fixtures.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace plateau::media::testing {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Rgb8 gradient(int width, int height) {
  Rgb8 picture{width, height, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      picture.pixels.push_back(static_cast<uint8_t>(20 + 200 * x / width));
      picture.pixels.push_back(static_cast<uint8_t>(30 + 180 * y / height));
      picture.pixels.push_back(static_cast<uint8_t>(220 - 150 * (x + y) / (width + height)));
    }
  }
  return picture;
}

Rgb8 noise(int width, int height) {
  Rgb8 picture{width, height, {}};
  picture.pixels.resize(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
  uint32_t state = 1;
  for (uint8_t& value : picture.pixels) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<uint8_t>(state >> 24);
  }
  return picture;
}

Rgb8 card(bool grey) {
  constexpr std::array<std::array<uint8_t, 3>, 4> kColours{
      {{200, 30, 40}, {20, 160, 60}, {30, 60, 190}, {240, 220, 30}}};
  constexpr std::array<uint8_t, 4> kGreys{0, 255, 96, 200};
  Rgb8 picture{kCardSize, kCardSize, {}};
  for (int y = 0; y < kCardSize; ++y) {
    for (int x = 0; x < kCardSize; ++x) {
      const size_t patch =
          static_cast<size_t>(2 * (y >= kCardSize / 2)) + static_cast<size_t>(x >= kCardSize / 2);
      for (size_t c = 0; c < 3; ++c) {
        picture.pixels.push_back(grey ? kGreys[patch] : kColours[patch][c]);
      }
    }
  }
  return picture;
}

Rgb8 read_square(const std::string& path, int size, const ImageLimits& limits) {
  TileGrid grid;
  grid.tile_size = size;
  return read_grid(path, grid, limits);
}

Rgb8 read_grid(const std::string& path, const TileGrid& grid, const ImageLimits& limits) {
  Rgb8 picture{static_cast<int>(grid.width()), static_cast<int>(grid.height()), {}};
  const auto row_bytes = static_cast<size_t>(picture.width) * 3;
  picture.pixels.resize(row_bytes * static_cast<size_t>(picture.height));
  TileReader reader(path, grid, limits);
  for (int row = 0; row < grid.n_rows; ++row) {
    for (int col = 0; col < grid.n_cols; ++col) {
      const std::optional<Rgb8> tile = reader.next();
      if (!tile.has_value()) {
        ADD_FAILURE() << "tile " << row << ", " << col << " is missing";
        return picture;
      }
      const auto tile_row_bytes = static_cast<size_t>(grid.tile_size) * 3;
      for (int y = 0; y < grid.tile_size; ++y) {
        const size_t to = static_cast<size_t>(row * grid.tile_size + y) * row_bytes +
                          static_cast<size_t>(col) * tile_row_bytes;
        std::copy_n(tile->pixels.data() + static_cast<size_t>(y) * tile_row_bytes, tile_row_bytes,
                    picture.pixels.data() + to);
      }
    }
  }
  if (grid.thumbnail) {
    EXPECT_TRUE(reader.next().has_value());
  }
  EXPECT_FALSE(reader.next().has_value());
  return picture;
}

Error error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 1), "[") << error.what();
    return error;
  }
  ADD_FAILURE() << "expected an error";
  return Error(ErrorCode::kInternal, "no error");
}

int max_difference(const Rgb8& a, const Rgb8& b) {
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.pixels.size(), b.pixels.size());
  if (a.pixels.size() != b.pixels.size()) return 256;
  int max = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) {
    max = std::max(max, std::abs(int{a.pixels[i]} - int{b.pixels[i]}));
  }
  return max;
}

double mean_difference(const Rgb8& a, const Rgb8& b) {
  EXPECT_EQ(a.pixels.size(), b.pixels.size());
  if (a.pixels.size() != b.pixels.size()) return 256;
  double sum = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) {
    sum += std::abs(int{a.pixels[i]} - int{b.pixels[i]});
  }
  return sum / static_cast<double>(a.pixels.size());
}

std::string with_app1(const std::string& jpeg, std::string_view content) {
  const size_t size = content.size() + 2;
  std::string segment = "\xff\xe1";
  segment += static_cast<char>(size >> 8);
  segment += static_cast<char>(size & 0xff);
  segment += content;
  return jpeg.substr(0, 2) + segment + jpeg.substr(2);
}

std::string exif(int orientation) {
  using namespace std::string_literals;
  return "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0"s +
         std::string{static_cast<char>(orientation), 0, 0, 0} + "\0\0\0\0"s;
}

}  // namespace plateau::media::testing
